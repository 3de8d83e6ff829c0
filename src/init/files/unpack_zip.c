/*
 * UNPACK of a zip archive. Its directory is at the end, so it is kept in a file without a name in
 * the target's filesystem until it is complete: it counts as the sandbox's own. All of it is looked
 * through before the first member is made, and what could not be unpacked changes nothing.
 *
 * Members may not share bytes of the archive, and not be a thousand times larger than it: such
 * archives are made to fill disks.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/deflate.h"
#include "base/fd.h"
#include "base/zip.h"
#include "init/files/unpack.h"

#define FREE_SIZE (UINT64_C(1) << 30)
#define RATIO_MAX 1000

struct zip {
	int fd;
	struct zip_reader reader;
	struct tar_member member;
	/* The position in the content that is being read. */
	uint64_t at, packed_left;
	uint64_t size;
	uint32_t crc;
	int to;             /* -1: into the buffer */
	struct buf *buffer; /* of a link's target */
};

/* ---- the archive ---- */

static int make_spool(int dir_fd)
{
	char name[32];
	int fd = openat(dir_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
		return fd < 0 ? -errno : fd;
	random_name(name);
	fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		unlinkat(dir_fd, name, 0);
	return fd < 0 ? -errno : fd;
}

static int unpack_zip_spool(struct unpacking *u, struct zip *z)
{
	static char chunk[256 * 1024];
	ssize_t n;
	while ((n = unpack_some_input(u, chunk, sizeof chunk)) > 0) {
		int r = fd_write_all(z->fd, chunk, (size_t)n);
		if (r < 0)
			return r;
		z->reader.size += (uint64_t)n;
	}
	return (int)n;
}

static int read_spool(void *arg, uint64_t at, void *bytes, size_t len)
{
	const struct zip *z = arg;
	for (size_t got = 0; got < len;) {
		ssize_t n = pread(z->fd, (char *)bytes + got, len - got, (off_t)(at + got));
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -EBADMSG;
		got += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* ---- content ---- */

static ssize_t read_packed(void *arg, unsigned char *bytes, size_t max)
{
	struct zip *z = arg;
	size_t n = max < z->packed_left ? max : (size_t)z->packed_left;
	int r = read_spool(z, z->at, bytes, n);
	if (r < 0)
		return r;
	z->at += n;
	z->packed_left -= n;
	return (ssize_t)n;
}

static int write_plain(void *arg, const unsigned char *bytes, size_t len)
{
	struct zip *z = arg;
	z->crc = zip_crc(z->crc, bytes, len);
	z->size += len;
	if (z->to >= 0)
		return fd_write_all(z->to, bytes, len);
	buf_append(z->buffer, bytes, len);
	return z->buffer->failed ? -ENOMEM : 0;
}

static int copy_stored(const struct deflate_io *io)
{
	unsigned char chunk[16 * 1024];
	ssize_t n;
	while ((n = io->read(io->arg, chunk, sizeof chunk)) > 0) {
		int r = io->write(io->arg, chunk, (size_t)n);
		if (r < 0)
			return r;
	}
	return (int)n;
}

static int read_content(struct zip *z, int to, struct buf *buffer)
{
	const struct zip_entry *e = &z->reader.entry;
	const struct deflate_io io = {read_packed, write_plain, z};
	int r = zip_find_content(&z->reader, &z->at);
	if (r < 0)
		return r;
	z->packed_left = e->packed;
	z->size = 0;
	z->crc = 0;
	z->to = to;
	z->buffer = buffer;
	r = e->method == ZIP_STORED ? copy_stored(&io) : deflate_expand(&io, e->size);
	if (r < 0)
		return r;
	return z->size == e->size && z->crc == e->crc ? 0 : -EBADMSG;
}

static int unpack_zip_take_content(struct unpacking *u, int fd)
{
	return fd < 0 ? 0 : read_content(u->reader, fd, NULL);
}

/* ---- members ---- */

static int unpack_zip_check_target(const struct buf *target)
{
	return target->len > 1 && strlen(target->data) + 1 == target->len ? 0 : -EBADMSG;
}

/* The entry as a member; 0 when it is of a kind that is left out. */
static int unpack_zip_describe(struct zip *z)
{
	const struct zip_entry *e = &z->reader.entry;
	struct tar_member *m = &z->member;
	m->type = S_ISDIR(e->mode) ? '5' : S_ISLNK(e->mode) ? '2' : '0';
	if (m->type == '0' && !S_ISREG(e->mode))
		return 0;
	m->mode = e->mode & 07777;
	m->uid = m->gid = 0;
	m->size = e->size;
	m->mtime_s = e->mtime_s;
	m->path.len = m->target.len = 0;
	buf_append(&m->path, e->name.data, e->name.len);
	if (m->type == '2') {
		int r = e->size < PATH_MAX ? read_content(z, -1, &m->target) : -EBADMSG;
		if (r < 0)
			return r;
	}
	buf_append_char(&m->target, '\0');
	if (m->path.failed || m->target.failed)
		return -ENOMEM;
	return m->type == '2' && unpack_zip_check_target(&m->target) < 0 ? -EBADMSG : 1;
}

/* Checks that no member leads outside and that the archive is consistent. */
static int look_through(struct unpacking *u, struct zip *z)
{
	uint64_t packed = 0, size = 0, at;
	int r = zip_open(&z->reader);
	while (r >= 0 && (r = zip_next(&z->reader)) > 0) {
		const struct zip_entry *e = &z->reader.entry;
		autofree char *path = strdup(e->name.data);
		if (!path)
			return -ENOMEM;
		if (!tar_clean_path(path))
			return serve_fail(u->outcome, -EXDEV, e->name.data);
		packed += e->packed;
		if (e->packed > z->reader.size || packed > z->reader.size ||
			e->size > UINT64_MAX / 2 - size || zip_find_content(&z->reader, &at) < 0)
			return serve_fail(u->outcome, -EBADMSG, e->name.data);
		size += e->size;
	}
	bool bomb = size > FREE_SIZE && size / RATIO_MAX > z->reader.size;
	return r == 0 && bomb ? -EBADMSG : r;
}

static int unpack_entries(struct unpacking *u, struct zip *z)
{
	int r = zip_open(&z->reader);
	while (r >= 0 && (r = zip_next(&z->reader)) > 0) {
		r = unpack_zip_describe(z);
		if (r > 0)
			r = unpack_take(u);
		else if (r < 0)
			serve_fail(u->outcome, r, z->reader.entry.name.data);
	}
	return r;
}

static int read_zip(struct unpacking *u)
{
	struct zip z = {.reader = {.read_at = read_spool}, .fd = make_spool(u->top)};
	if (z.fd < 0)
		return z.fd;
	z.reader.arg = &z;
	u->reader = &z;
	u->member = &z.member;
	int r = unpack_zip_spool(u, &z);
	if (r == 0)
		r = look_through(u, &z);
	if (r == 0)
		r = unpack_entries(u, &z);
	close(z.fd);
	zip_reader_finish(&z.reader);
	tar_member_finish(&z.member);
	u->member = NULL;
	u->reader = NULL;
	return r;
}

const struct unpack_format unpack_zip = {read_zip, unpack_zip_take_content};
