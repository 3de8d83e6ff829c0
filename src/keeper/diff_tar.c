/*
 * Differences as a tar (POSIX pax): what was added or changed with its mode, owner and time, links
 * and hard links; what was deleted as an empty file ".wh.NAME", as in the layers of images. Sockets
 * and devices are left out: they mean nothing elsewhere.
 */
#include "keeper/diff.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "keeper/links.h"

#define BLOCK          512
#define NAME_LEN       100
#define SIZE_MAX_OCTAL 077777777777LL

struct header {
	char name[NAME_LEN], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type;
	char link[NAME_LEN], magic[6], version[2], user[32], group[32], major[8], minor[8];
	char prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

struct tar_writer {
	struct diff_out *out;
	struct links links;
};

struct tar_writer *tar_writer_new(struct diff_out *out)
{
	struct tar_writer *t = calloc(1, sizeof *t);
	if (t)
		t->out = out;
	return t;
}

void tar_writer_free(struct tar_writer *t)
{
	links_finish(&t->links);
	free(t);
}

/* ---- headers ---- */

static void put_octal(char *field, size_t size, uint64_t value)
{
	char text[32];
	snprintf(text, sizeof text, "%0*llo", (int)size - 1, (unsigned long long)value);
	memcpy(field, text, size - 1);
	field[size - 1] = '\0';
}

static int put_header(struct tar_writer *t, struct header *h)
{
	unsigned sum = 0;
	memcpy(h->magic, "ustar", 6);
	memcpy(h->version, "00", 2);
	memset(h->sum, ' ', sizeof h->sum);
	for (size_t i = 0; i < BLOCK; i++)
		sum += ((const unsigned char *)h)[i];
	snprintf(h->sum, sizeof h->sum, "%06o", sum);
	return diff_out_bytes(t->out, h, sizeof *h);
}

static int put_padding(struct tar_writer *t, uint64_t size)
{
	static const char zero[BLOCK];
	return size % BLOCK ? diff_out_bytes(t->out, zero, BLOCK - size % BLOCK) : 0;
}

/* "LEN key=value\n", where LEN counts itself. */
static void add_pax(struct buf *out, const char *key, const char *value, size_t len)
{
	size_t rest = strlen(key) + len + 3, total = rest + 1, digits;
	char text[32];
	do {
		digits = (size_t)snprintf(text, sizeof text, "%zu", total);
		total = rest + digits;
	} while ((size_t)snprintf(text, sizeof text, "%zu", total) != digits);
	buf_append_str(out, text);
	buf_append_char(out, ' ');
	buf_append_str(out, key);
	buf_append_char(out, '=');
	buf_append(out, value, len);
	buf_append_char(out, '\n');
}

static int put_pax(struct tar_writer *t, const struct buf *records)
{
	struct header h = {.name = "pax", .type = 'x'};
	if (records->failed)
		return -ENOMEM;
	if (records->len == 0)
		return 0;
	put_octal(h.mode, sizeof h.mode, 0644);
	put_octal(h.uid, sizeof h.uid, 0);
	put_octal(h.gid, sizeof h.gid, 0);
	put_octal(h.mtime, sizeof h.mtime, 0);
	put_octal(h.size, sizeof h.size, records->len);
	int r = put_header(t, &h);
	if (r == 0)
		r = diff_out_bytes(t->out, records->data, records->len);
	return r < 0 ? r : put_padding(t, records->len);
}

static void put_name(char field[NAME_LEN], const char *key, const char *text, struct buf *pax)
{
	size_t len = strlen(text);
	if (len > NAME_LEN)
		add_pax(pax, key, text, len);
	memcpy(field, text, len > NAME_LEN ? NAME_LEN : len);
}

/* One member's head; its bytes are to follow. */
static int put_member(struct tar_writer *t, const char *path, char type, const char *link,
	const struct stat *st, uint64_t size)
{
	struct header h = {.type = type};
	autobuf pax = {0};
	char number[32];
	put_name(h.name, "path", path, &pax);
	if (link)
		put_name(h.link, "linkpath", link, &pax);
	if (size > SIZE_MAX_OCTAL) {
		snprintf(number, sizeof number, "%llu", (unsigned long long)size);
		add_pax(&pax, "size", number, strlen(number));
	}
	snprintf(number, sizeof number, "%lld.%09ld", (long long)st->st_mtim.tv_sec,
		st->st_mtim.tv_nsec);
	add_pax(&pax, "mtime", number, strlen(number));
	put_octal(h.mode, sizeof h.mode, st->st_mode & 07777);
	put_octal(h.uid, sizeof h.uid, st->st_uid & 07777777);
	put_octal(h.gid, sizeof h.gid, st->st_gid & 07777777);
	put_octal(h.size, sizeof h.size, size > SIZE_MAX_OCTAL ? 0 : size);
	put_octal(h.mtime, sizeof h.mtime,
		st->st_mtim.tv_sec < 0 ? 0 : (uint64_t)st->st_mtim.tv_sec & SIZE_MAX_OCTAL);
	int r = put_pax(t, &pax);
	return r < 0 ? r : put_header(t, &h);
}

/* ---- content ---- */

/* Exactly `size` bytes: what has shrunk meanwhile is filled up, what has grown is cut. */
static int put_content(struct tar_writer *t, int fd, uint64_t size)
{
	char chunk[65536];
	uint64_t left = size;
	while (left > 0) {
		size_t want = left < sizeof chunk ? (size_t)left : sizeof chunk;
		ssize_t n = read(fd, chunk, want);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0) {
			memset(chunk, 0, want);
			n = (ssize_t)want;
		}
		int r = diff_out_bytes(t->out, chunk, (size_t)n);
		if (r < 0)
			return r;
		left -= (uint64_t)n;
	}
	return put_padding(t, size);
}

static int put_file(struct tar_writer *t, const struct change *c, const char *path)
{
	const struct stat *st = &c->new->st;
	const char *first = st->st_nlink > 1 ? links_find(&t->links, st) : NULL;
	if (first)
		return put_member(t, path, '1', first, st, 0);
	autoclose int fd = diff_open_file(c->new, c->name);
	if (fd < 0)
		return 0; /* it is not there any more */
	/* One that is not remembered becomes a copy. */
	if (st->st_nlink > 1)
		links_add(&t->links, st, "", path);
	int r = put_member(t, path, '0', NULL, st, (uint64_t)st->st_size);
	return r < 0 ? r : put_content(t, fd, (uint64_t)st->st_size);
}

static int put_link(struct tar_writer *t, const struct change *c, const char *path)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(c->new->dir_fd, c->name, target, sizeof target - 1);
	if (n < 0)
		return 0;
	target[n] = '\0';
	return put_member(t, path, '2', target, &c->new->st, 0);
}

static int put_directory(struct tar_writer *t, const struct change *c, const char *path)
{
	char name[PATH_MAX + 1];
	snprintf(name, sizeof name, "%s/", path);
	return put_member(t, name, '5', NULL, &c->new->st, 0);
}

static int put_whiteout(struct tar_writer *t, const struct change *c, const char *path)
{
	char name[PATH_MAX + 8];
	const struct stat st = {.st_mode = 0644};
	snprintf(name, sizeof name, "%.*s.wh.%s", (int)(strlen(path) - strlen(c->name)), path,
		c->name);
	return put_member(t, name, '0', NULL, &st, 0);
}

int tar_write_change(void *arg, const struct change *c)
{
	struct tar_writer *t = arg;
	const char *path = c->path + 1;
	if (c->kind == DIFF_DELETED)
		return put_whiteout(t, c, path);
	/* Whoever unpacks this need not replace one kind by another. */
	if (c->old->exists && (c->old->st.st_mode & S_IFMT) != (c->new->st.st_mode &S_IFMT)) {
		int r = put_whiteout(t, c, path);
		if (r < 0)
			return r;
	}
	switch (c->new->st.st_mode &S_IFMT) {
	case S_IFREG:
		return put_file(t, c, path);
	case S_IFDIR:
		return put_directory(t, c, path);
	case S_IFLNK:
		return put_link(t, c, path);
	case S_IFIFO:
		return put_member(t, path, '6', NULL, &c->new->st, 0);
	default:
		return 0;
	}
}

int tar_write_end(struct tar_writer *t)
{
	static const char zero[2 * BLOCK];
	return diff_out_bytes(t->out, zero, sizeof zero);
}
