/*
 * A file is written in place, or, when it is to be replaced at once, beside its place: without a
 * name where the filesystem can do that, so that nothing stays of a writer that was killed, and
 * renamed over it at the end.
 */
#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"

static bool has_owner(uid_t uid, gid_t gid)
{
	return uid != (uid_t)-1 || gid != (gid_t)-1;
}

int make_parents(const char *path, uid_t uid, gid_t gid)
{
	char prefix[PATH_MAX];
	size_t len = strlen(path);
	if (len >= sizeof prefix)
		return -ENAMETOOLONG;
	memcpy(prefix, path, len + 1);
	for (char *p = prefix + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(prefix, 0755) == 0) {
			if (has_owner(uid, gid) && chown(prefix, uid, gid) < 0)
				return -errno;
		} else if (errno != EEXIST) {
			return -errno;
		}
		*p = '/';
	}
	return 0;
}

/* Applies the requested mode and owner; those not requested stay. */
static int target_file_settle(int fd, const struct record_file *how, uid_t uid, gid_t gid)
{
	/* First the owner: changing it takes set-id bits away. */
	if (has_owner(uid, gid) && fchown(fd, uid, gid) < 0)
		return -errno;
	if ((how->flags & FILE_HAS_MODE) && fchmod(fd, how->mode & 07777) < 0)
		return -errno;
	return 0;
}

/* ---- in place ---- */

static int open_in_place(const char *path, const struct record_file *how)
{
	/* O_NONBLOCK: a FIFO without a reader answers ENXIO instead of waiting for one. */
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	if (how->flags & FILE_EXCLUSIVE)
		flags |= O_EXCL;
	if (how->flags & FILE_APPEND)
		flags |= O_APPEND;
	mode_t mode = how->flags & FILE_HAS_MODE ? how->mode & 0777 : 0666;
	int fd = open(path, flags, mode);
	if (fd < 0 && errno == ENOENT && (how->flags & FILE_PARENTS))
		return -ENOENT;
	return fd < 0 ? -errno : fd;
}

static int prepare_in_place(int fd, const struct record_file *how)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENXIO;
	if (how->flags & FILE_AT_OFFSET)
		return lseek(fd, (off_t)how->offset, SEEK_SET) < 0 ? -errno : 0;
	if (!(how->flags & FILE_APPEND) && st.st_size > 0 && ftruncate(fd, 0) < 0)
		return -errno;
	return 0;
}

/* ---- beside ---- */

void random_name(char out[32])
{
	uint64_t number = 0;
	if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
		number = (uint64_t)getpid();
	snprintf(out, 32, ".bunker-%016llx", (unsigned long long)number);
}

/* Resolves a link in the last component, so that its target is replaced, not the link. Owned. */
static char *resolve_last(const char *path)
{
	struct stat st;
	if (lstat(path, &st) < 0 || !S_ISLNK(st.st_mode))
		return strdup(path);
	char *real = realpath(path, NULL);
	return real;
}

/* The directory to write in, and the name there. */
static int open_beside(struct target_file *p, const char *path)
{
	autofree char *real = resolve_last(path);
	if (!real)
		return -errno;
	char *slash = strrchr(real, '/');
	const char *name = slash ? slash + 1 : real;
	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EISDIR;
	p->name = strdup(name);
	if (!p->name)
		return -ENOMEM;
	if (slash)
		slash[1] = '\0';
	p->dir_fd = open(slash ? real : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return p->dir_fd < 0 ? -errno : 0;
}

static int check_replaced(
	const struct target_file *p, const struct record_file *how, struct stat *st)
{
	st->st_mode = 0;
	if (fstatat(p->dir_fd, p->name, st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (how->flags & FILE_EXCLUSIVE)
		return -EEXIST;
	if (S_ISDIR(st->st_mode))
		return -EISDIR;
	return S_ISREG(st->st_mode) ? 0 : -ENXIO;
}

static int make_temporary(struct target_file *p)
{
	p->fd = openat(p->dir_fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
	p->nameless = p->fd >= 0;
	if (p->fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
		return p->fd < 0 ? -errno : 0;
	random_name(p->temporary);
	p->fd = openat(p->dir_fd, p->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (p->fd < 0) {
		p->temporary[0] = '\0';
		return -errno;
	}
	return 0;
}

/* Keeps mode, and owner if permitted, of the replaced file; not its content. */
static int target_file_open_beside(
	struct target_file *p, const char *path, const struct record_file *how)
{
	struct stat st = {0};
	int r = open_beside(p, path);
	if (r == 0)
		r = check_replaced(p, how, &st);
	if (r == 0)
		r = make_temporary(p);
	if (r < 0 || st.st_mode == 0)
		return r;
	if (fchown(p->fd, st.st_uid, st.st_gid) < 0 && errno != EPERM)
		return -errno;
	return fchmod(p->fd, st.st_mode & 07777) < 0 ? -errno : 0;
}

/* ---- both ---- */

static int open_once(struct target_file *p, const char *path, const struct record_file *how)
{
	if (how->flags & FILE_ATOMIC)
		return target_file_open_beside(p, path, how);
	int fd = open_in_place(path, how);
	if (fd < 0)
		return fd;
	p->fd = fd;
	return prepare_in_place(fd, how);
}

int target_file_open(struct target_file *p, const char *path, const struct record_file *how,
	uid_t uid, gid_t gid)
{
	*p = (struct target_file){.fd = -1, .dir_fd = -1};
	int r = open_once(p, path, how);
	if (r == -ENOENT && (how->flags & FILE_PARENTS)) {
		target_file_finish(p);
		r = make_parents(path, uid, gid);
		if (r == 0)
			r = open_once(p, path, how);
	}
	return r < 0 ? r : target_file_settle(p->fd, how, uid, gid);
}

static int target_file_give_name(struct target_file *p)
{
	char self[64];
	snprintf(self, sizeof self, "/proc/self/fd/%d", p->fd);
	random_name(p->temporary);
	if (linkat(AT_FDCWD, self, p->dir_fd, p->temporary, AT_SYMLINK_FOLLOW) < 0) {
		p->temporary[0] = '\0';
		return -errno;
	}
	p->nameless = false;
	return 0;
}

int target_file_commit(struct target_file *p)
{
	if (p->dir_fd < 0)
		return 0;
	int r = p->nameless ? target_file_give_name(p) : 0;
	if (r < 0)
		return r;
	if (renameat(p->dir_fd, p->temporary, p->dir_fd, p->name) < 0)
		return -errno;
	p->temporary[0] = '\0';
	return 0;
}

void target_file_finish(struct target_file *p)
{
	if (p->temporary[0])
		unlinkat(p->dir_fd, p->temporary, 0);
	if (p->fd >= 0)
		close(p->fd);
	if (p->dir_fd >= 0)
		close(p->dir_fd);
	free(p->name);
	*p = (struct target_file){.fd = -1, .dir_fd = -1};
}
