/*
 * ATTRIBUTES: sets and removes extended attributes of the namespace "user", then tells all there
 * are. Which filesystems have them, and how much fits, is theirs to say.
 */
#include "init/files/files.h"

#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

#define NAMES_MAX (32u * 1024)

static const char prefix[] = "user.";

static int change_attribute(const char *path, const struct record_header *h, struct outcome *o)
{
	const char *payload;
	struct record_attribute a;
	struct record_text t[2];
	char name[256];
	int r = io_payload(h, &payload);
	if (r == 0)
		r = record_decode_attribute(payload, (size_t)h->size, &a, t);
	if (r < 0)
		return r;
	if (t[0].len >= sizeof name || strncmp(t[0].data, prefix, strlen(prefix)) != 0)
		return serve_fail(o, -EINVAL, path);
	memcpy(name, t[0].data, t[0].len);
	name[t[0].len] = '\0';
	o->count++;
	if (a.value_len != RECORD_REMOVED)
		return setxattr(path, name, t[1].data, t[1].len, 0) < 0 ? -errno : 0;
	return removexattr(path, name) < 0 && errno != ENODATA ? -errno : 0;
}

static int attributes_put_attribute(const char *path, const char *name)
{
	static char value[RECORD_MAX / 2];
	ssize_t n = getxattr(path, name, value, sizeof value);
	if (n < 0)
		return errno == ENODATA ? 0 : -errno;
	struct record_text texts[] = {{name, strlen(name)}, {value, (size_t)n}};
	struct record_attribute a = {(uint32_t)texts[0].len, (uint32_t)n};
	return io_put(RECORD_ATTRIBUTE, &a, sizeof a, texts, 2);
}

int put_attributes(const char *path)
{
	static char names[NAMES_MAX];
	ssize_t len = listxattr(path, names, sizeof names);
	if (len < 0)
		return errno == ENOTSUP ? 0 : -errno;
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1) {
		int r = strncmp(names + at, prefix, strlen(prefix)) == 0
				? attributes_put_attribute(path, names + at)
				: 0;
		if (r < 0)
			return r;
	}
	return 0;
}

int remove_attributes(int fd, const char *beginning, size_t len)
{
	static char names[NAMES_MAX];
	ssize_t size = flistxattr(fd, names, sizeof names);
	if (size < 0)
		return errno == ENOTSUP ? 0 : -errno;
	for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1)
		if (strncmp(names + at, beginning, len) == 0 && fremovexattr(fd, names + at) < 0 &&
			errno != ENODATA)
			return -errno;
	return 0;
}

int file_attributes(const struct file_request *r, struct outcome *o)
{
	struct record_header h;
	const char *payload;
	for (;;) {
		int e = io_next(&h);
		if (e < 0)
			return e;
		if (h.type == RECORD_END) {
			e = io_payload(&h, &payload);
			return e < 0 ? e : put_attributes(r->text[FILE_PATH]);
		}
		e = h.type == RECORD_ATTRIBUTE ? change_attribute(r->text[FILE_PATH], &h, o)
					       : -EPROTO;
		if (e < 0)
			return e;
	}
}
