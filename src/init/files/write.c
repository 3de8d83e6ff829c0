/*
 * WRITE: one file or many in one request. It stops at the first that fails; those before it are
 * written. Where the front goes away in the middle of a file, an atomic one is not seen at all, and
 * another is as long as what has come.
 */
#include "init/files/files.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/processor.h"

static int write_data(int fd, uint64_t left)
{
	static char chunk[256 * 1024];
	while (left > 0) {
		ssize_t n = io_data(chunk, left < sizeof chunk ? (size_t)left : sizeof chunk);
		if (n < 0)
			return (int)n;
		int r = fd_write_all(fd, chunk, (size_t)n);
		if (r < 0)
			return r;
		left -= (uint64_t)n;
	}
	return 0;
}

static int write_attribute(int fd, const struct record_header *h)
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
	if (t[0].len >= sizeof name || strncmp(t[0].data, "user.", 5) != 0)
		return -EINVAL;
	if (a.value_len == RECORD_REMOVED)
		return t[0].data[t[0].len - 1] == '.' ? remove_attributes(fd, t[0].data, t[0].len)
						      : -EINVAL;
	memcpy(name, t[0].data, t[0].len);
	name[t[0].len] = '\0';
	return fsetxattr(fd, name, t[1].data, t[1].len, 0) < 0 ? -errno : 0;
}

/* Writes content until the record that says that the file is complete. */
static int files_write_content(int fd)
{
	struct record_header h;
	uint64_t total = 0;
	for (;;) {
		int r = io_next(&h);
		if (r < 0)
			return r;
		if (h.type == RECORD_DONE && h.size == 0)
			return 0;
		if (h.type == RECORD_DATA && (total += h.size) > FILE_IS_LARGE)
			processor_stay(0);
		if (h.type == RECORD_DATA)
			r = write_data(fd, h.size);
		else
			r = h.type == RECORD_ATTRIBUTE ? write_attribute(fd, &h) : -EPROTO;
		if (r < 0)
			return r;
	}
}

static int files_write_report(const struct file_request *r, const char *path, int fd)
{
	struct stat st;
	autobuf absolute = {0};
	if (fstat(fd, &st) < 0)
		return -errno;
	int e = path_absolute(path, &absolute);
	if (e < 0)
		return e;
	return put_entry(absolute.data, &st, fd, "", r->fixed.flags);
}

static int write_one(const struct file_request *r, const struct record_file *how, const char *path,
	const struct record_text *owner)
{
	struct target_file p;
	uid_t uid;
	gid_t gid;
	if (how->offset > INT64_MAX || owner_parse(owner->data, owner->len, &uid, &gid) < 0)
		return -EINVAL;
	int e = target_file_open(&p, path, how, uid, gid);
	if (e == 0)
		e = files_write_content(p.fd);
	if (e == 0)
		e = target_file_commit(&p);
	if (e == 0)
		e = files_write_report(r, path, p.fd);
	target_file_finish(&p);
	return e;
}

static int take_file(const struct file_request *r, const struct record_header *h, struct outcome *o)
{
	const char *payload;
	struct record_file how;
	struct record_text t[2];
	char path[PATH_MAX], owner[256];
	int e = io_payload(h, &payload);
	if (e == 0)
		e = record_decode_file(payload, (size_t)h->size, &how, t);
	if (e < 0)
		return e;
	if (t[0].len >= sizeof path || t[1].len >= sizeof owner)
		return -ENAMETOOLONG;
	if (t[0].len == 0)
		return -ENOENT;
	memcpy(path, t[0].data, t[0].len);
	path[t[0].len] = '\0';
	memcpy(owner, t[1].data, t[1].len);
	e = write_one(r, &how, path, &(struct record_text){owner, t[1].len});
	if (e == 0)
		o->count++;
	return e < 0 ? serve_fail(o, e, path) : 0;
}

int file_write(const struct file_request *r, struct outcome *o)
{
	struct record_header h;
	for (;;) {
		const char *payload;
		int e = io_next(&h);
		if (e < 0)
			return e;
		if (h.type == RECORD_END)
			return io_payload(&h, &payload);
		e = h.type == RECORD_FILE ? take_file(r, &h, o) : -EPROTO;
		if (e < 0)
			return e;
	}
}
