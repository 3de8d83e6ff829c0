#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/tar.h"
#include "cli/copy.h"
#include "cli/report.h"

/* A directory's mode and time are set when its content is there. */
struct later {
	struct later *next;
	mode_t mode;
	struct timespec mtime;
	char path[];
};

struct unpacking {
	int fd;
	int top;
	const char *name; /* of the one member; NULL: as the archive says */
	struct tar_reader tar;
	struct progress *progress;
	struct later *later; /* the deepest first */
};

/* All of it; 1 when there is nothing more, at a place where that may be. */
static int copy_unpack_read_archive(void *arg, char *bytes, size_t len)
{
	struct unpacking *u = arg;
	size_t got = 0;
	while (got < len) {
		ssize_t n = read(u->fd, bytes + got, len - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return got == 0 ? 1 : -EBADMSG;
		got += (size_t)n;
		cli_progress_add(u->progress, (uint64_t)n);
	}
	return 0;
}

static int copy_unpack_take_content(struct unpacking *u, int fd)
{
	static char chunk[256 * 1024];
	uint64_t size = u->tar.member.size;
	if (size > INT64_MAX - TAR_BLOCK)
		return -EBADMSG;
	for (uint64_t left = (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK; left > 0;) {
		size_t n = left < sizeof chunk ? (size_t)left : sizeof chunk;
		int r = copy_unpack_read_archive(u, chunk, n);
		if (r != 0)
			return r == 1 ? -EBADMSG : r;
		size_t useful = size < n ? (size_t)size : n;
		if (fd >= 0 && (r = fd_write_all(fd, chunk, useful)) < 0)
			return r;
		left -= n;
		size -= useful;
	}
	return 0;
}

/* ---- members ---- */

/* Removes an existing entry of that name, unless it is a directory. */
static int copy_unpack_make_room(int dir, const char *name)
{
	return unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static struct timespec time_of(const struct tar_member *m)
{
	return (struct timespec){m->mtime_s, m->mtime_ns};
}

/* Set-id bits stay behind: they would be ours. */
static int copy_unpack_file(struct unpacking *u, int dir, const char *name)
{
	const struct tar_member *m = &u->tar.member;
	struct timespec times[2] = {{0, UTIME_OMIT}, time_of(m)};
	int r = copy_unpack_make_room(dir, name);
	if (r < 0)
		return r;
	autoclose int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = copy_unpack_take_content(u, fd);
	if (r < 0)
		return r;
	return fchmod(fd, m->mode & 0777) < 0 || futimens(fd, times) < 0 ? -errno : 0;
}

static int unpack_link(struct unpacking *u, int dir, const char *name)
{
	const struct tar_member *m = &u->tar.member;
	struct timespec times[2] = {{0, UTIME_OMIT}, time_of(m)};
	int r = copy_unpack_make_room(dir, name);
	if (r < 0)
		return r;
	if (symlinkat(m->target.data, dir, name) < 0)
		return -errno;
	utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
	return 0;
}

static int copy_unpack_hard_link(struct unpacking *u, int dir, const char *name)
{
	char *target = u->tar.member.target.data;
	if (!tar_clean_path(target) || !target[0])
		return -EXDEV;
	char *slash = strrchr(target, '/');
	if (slash)
		*slash = '\0';
	autoclose int from =
		beneath_open(u->top, slash ? target : "", O_PATH | O_DIRECTORY, BENEATH_STAYS);
	if (from < 0)
		return from;
	int r = copy_unpack_make_room(dir, name);
	if (r < 0)
		return r;
	return linkat(from, slash ? slash + 1 : target, dir, name, 0) < 0 ? -errno : 0;
}

static int copy_unpack_directory(struct unpacking *u, int dir, const char *name, const char *path)
{
	const struct tar_member *m = &u->tar.member;
	struct later *l = calloc(1, sizeof *l + strlen(path) + 1);
	if (!l)
		return -ENOMEM;
	*l = (struct later){u->later, m->mode & 0777, time_of(m)};
	memcpy(l->path, path, strlen(path) + 1);
	u->later = l;
	if (name[0] == '\0' || mkdirat(dir, name, 0700) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	autoclose int there = beneath_open(u->top, path, O_PATH | O_DIRECTORY, BENEATH_STAYS);
	return there < 0 ? there : 0;
}

static int copy_unpack_member(struct unpacking *u, char *path)
{
	char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	if (slash)
		*slash = '\0';
	autoclose int dir = beneath_make(u->top, slash ? path : "", BENEATH_STAYS);
	if (slash)
		*slash = '/';
	if (dir < 0)
		return dir;
	switch (u->tar.member.type) {
	case '0':
		return copy_unpack_file(u, dir, name);
	case '1':
		return copy_unpack_hard_link(u, dir, name);
	case '2':
		return unpack_link(u, dir, name);
	case '5':
		return copy_unpack_directory(u, dir, name, path);
	default:
		/* FIFOs, devices: they would not be the same here. */
		return copy_unpack_take_content(u, -1);
	}
}

static int copy_unpack_take_member(struct unpacking *u)
{
	struct tar_member *m = &u->tar.member;
	if (u->name) {
		m->path.len = 0;
		buf_append(&m->path, u->name, strlen(u->name) + 1);
		if (m->path.failed || (m->type != '0' && m->type != '2'))
			return -EBADMSG;
	}
	if (!tar_clean_path(m->path.data))
		return -EXDEV;
	if (m->path.data[0] == '\0' && m->type != '5')
		return -EBADMSG;
	return copy_unpack_member(u, m->path.data);
}

/* ---- all of it ---- */

static int copy_unpack_apply_later(struct unpacking *u)
{
	int r = 0;
	for (struct later *l = u->later, *next; l; l = next) {
		struct timespec times[2] = {{0, UTIME_OMIT}, l->mtime};
		autoclose int fd =
			beneath_open(u->top, l->path, O_RDONLY | O_DIRECTORY, BENEATH_STAYS);
		if (fd >= 0 && (fchmod(fd, l->mode) < 0 || futimens(fd, times) < 0))
			r = -errno;
		next = l->next;
		free(l);
	}
	u->later = NULL;
	return r;
}

static int copy_unpack_report(const struct unpacking *u, int r)
{
	const struct buf *path = &u->tar.member.path;
	const char *name = path->len > 1 ? path->data : "the archive";
	if (r == -EXDEV)
		return cli_report(
			"%s would lead out of the directory; nothing more was written", name);
	return cli_report("%s: %s", name, strerror(-r));
}

int cli_unpack(int fd, const char *directory, const char *name, struct progress *progress)
{
	struct unpacking u = {.fd = fd, .name = name, .progress = progress};
	char rest[TAR_BLOCK];
	u.top = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (u.top < 0)
		return cli_report("%s: %s", directory, strerror(errno));
	u.tar = (struct tar_reader){.read = copy_unpack_read_archive, .arg = &u};
	int r, last;
	while ((r = tar_next(&u.tar)) > 0) {
		r = copy_unpack_take_member(&u);
		if (r < 0)
			break;
	}
	/* Skips the bytes after the end of the archive. */
	for (last = r; last == 0;)
		last = copy_unpack_read_archive(&u, rest, sizeof rest);
	int settled = copy_unpack_apply_later(&u);
	r = r < 0 ? r : settled;
	if (r < 0 && r != -EBADMSG)
		copy_unpack_report(&u, r);
	tar_reader_finish(&u.tar);
	close(u.top);
	return r == -EBADMSG ? UNPACK_INCOMPLETE : r < 0 ? -1 : 0;
}
