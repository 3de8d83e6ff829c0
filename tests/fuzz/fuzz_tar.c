/* Archives as they are read: whatever the bytes, a member's cleaned path stays below the directory,
 * and what is packed again reads as the same. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at, *end;
};

static int read_input(void *arg, char *bytes, size_t len)
{
	struct input *in = arg;
	size_t left = (size_t)(in->end - in->at);
	if (left < len) {
		in->at = in->end;
		return left == 0 ? 1 : -EBADMSG;
	}
	memcpy(bytes, in->at, len);
	in->at += len;
	return 0;
}

static void check_path(const char *path)
{
	char *clean = strdup(path);
	if (tar_clean_path(clean)) {
		if (clean[0] == '/' || strstr(clean, "//") || strcmp(clean, "..") == 0 ||
			strncmp(clean, "../", 3) == 0 || strstr(clean, "/../") ||
			strlen(clean) > strlen(path))
			abort();
		size_t len = strlen(clean);
		if (len >= 3 && strcmp(clean + len - 3, "/..") == 0)
			abort();
	}
	free(clean);
}

static void check_again(const struct tar_member *m)
{
	struct buf out = {0};
	struct tar_reader t = {.read = read_input};
	struct input in;
	struct tar_member copy = *m;
	/* What has no numbers that fit is not written by us. */
	if (m->type < '0' || m->type > '6' || m->path.len <= 1 || m->uid > 65535 || m->gid > 65535)
		return;
	copy.major = copy.minor = 0;
	tar_append_header(&out, &copy);
	in = (struct input){(const uint8_t *)out.data, (const uint8_t *)out.data + out.len};
	t.arg = &in;
	bool extended = m->path.len + m->target.len < 60000;
	if (extended && (tar_next(&t) != 1 || strcmp(t.member.path.data, m->path.data) != 0 ||
				t.member.size != m->size || t.member.mtime_s != m->mtime_s ||
				t.member.mtime_ns != m->mtime_ns))
		abort();
	tar_reader_finish(&t);
	buf_finish(&out);
}

/* No mutation finds a checksum by chance: each block gets the one it should have. */
static void fix_checksums(uint8_t *data, size_t size)
{
	for (; size >= TAR_BLOCK; data += TAR_BLOCK, size -= TAR_BLOCK) {
		unsigned sum = 8 * ' ';
		char text[8];
		for (size_t i = 0; i < TAR_BLOCK; i++)
			sum += i < 148 || i >= 156 ? data[i] : 0;
		snprintf(text, sizeof text, "%06o", sum);
		if (sum != 8 * ' ')
			memcpy(data + 148, text, sizeof text);
	}
}

static void read_all(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	struct tar_reader t = {.read = read_input, .arg = &in};
	while (tar_next(&t) == 1) {
		char block[TAR_BLOCK];
		const struct tar_member *m = &t.member;
		if (strlen(m->path.data) + 1 != m->path.len ||
			strlen(m->target.data) + 1 != m->target.len)
			abort();
		check_path(m->path.data);
		check_path(m->target.data);
		check_again(m);
		for (uint64_t left = m->size; left > 0; left -= left < TAR_BLOCK ? left : TAR_BLOCK)
			if (read_input(&in, block, sizeof block) != 0)
				break;
	}
	tar_reader_finish(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	memcpy(copy, data, size);
	read_all(copy, size);
	fix_checksums(copy, size);
	read_all(copy, size);
	free(copy);
	return 0;
}
