/*
 * Copying a whole disk where the file system has no snapshots. Everything an upper layer consists
 * of comes along: owners, modes, times, attributes (overlayfs keeps its marks there), links, hard
 * links, holes, whiteouts. File data is shared where the file system can (FICLONE).
 *
 * The source is hostile but still: its sandbox is frozen or gone. Nothing is followed, the depth is
 * bounded, and memory grows only with the number of hard links, to a limit.
 */
#include "keeper/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "keeper/hard_links.h"

#define DEPTH_MAX      512
#define XATTR_LIST_MAX 65536
#define CHUNK          (64u << 20)

struct copy {
	int root_fd;             /* of the copy */
	struct hard_links links; /* where the first copy of a file with more names is */
	char path[PATH_MAX];     /* of the directory that is being copied, below the root */
};

static int keeper_copy_directory(struct copy *c, int from, int to, unsigned depth);

/* ---- attributes ---- */

static int copy_xattr(const char *from, const char *to, const char *name)
{
	char value[XATTR_SIZE_MAX];
	ssize_t size = lgetxattr(from, name, value, sizeof value);
	if (size < 0)
		return errno == ENODATA ? 0 : -errno;
	return lsetxattr(to, name, value, (size_t)size, 0) < 0 ? -errno : 0;
}

static int copy_xattrs(int from, int to, const char *name)
{
	char from_path[NAME_MAX + 64], to_path[NAME_MAX + 64], list[XATTR_LIST_MAX];
	snprintf(from_path, sizeof from_path, "/proc/self/fd/%d/%s", from, name);
	snprintf(to_path, sizeof to_path, "/proc/self/fd/%d/%s", to, name);
	ssize_t size = llistxattr(from_path, list, sizeof list);
	if (size < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	for (const char *at = list; at < list + size; at += strlen(at) + 1) {
		int r = copy_xattr(from_path, to_path, at);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Attributes first: changing the owner would drop file capabilities, which are one of them. */
static int keeper_copy_attributes(int from, int to, const char *name, const struct stat *st)
{
	struct timespec times[2] = {st->st_atim, st->st_mtim};
	if (fchownat(to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	int r = copy_xattrs(from, to, name);
	if (r < 0)
		return r;
	if (!S_ISLNK(st->st_mode) && fchmodat(to, name, st->st_mode & 07777, 0) < 0)
		return -errno;
	return utimensat(to, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* ---- content ---- */

static int copy_range(int in, int out, off_t start, off_t end)
{
	while (start < end) {
		off_t at = start;
		size_t want = end - start > CHUNK ? CHUNK : (size_t)(end - start);
		ssize_t n = copy_file_range(in, &start, out, &at, want, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
	}
	return 0;
}

static int copy_data(int in, int out, off_t size)
{
	if (ioctl(out, FICLONE, in) == 0)
		return 0;
	if (ftruncate(out, size) < 0)
		return -errno;
	for (off_t end, start = 0; start < size; start = end) {
		start = lseek(in, start, SEEK_DATA);
		if (start < 0)
			return errno == ENXIO ? 0 : -errno; /* a hole until the end */
		end = lseek(in, start, SEEK_HOLE);
		int r = end < 0 ? -errno : copy_range(in, out, start, end);
		if (r < 0)
			return r;
	}
	return 0;
}

static int copy_file(int from, int to, const char *name, const struct stat *st)
{
	autoclose int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (in < 0)
		return -errno;
	autoclose int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return out < 0 ? -errno : copy_data(in, out, st->st_size);
}

static int copy_link(int from, int to, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from, name, target, sizeof target - 1);
	if (n < 0)
		return -errno;
	target[n] = '\0';
	return symlinkat(target, to, name) < 0 ? -errno : 0;
}

/* ---- the walk ---- */

static int keeper_copy_descend(struct copy *c, int from, int to, const char *name, unsigned depth)
{
	size_t len = strlen(c->path);
	if (depth == DEPTH_MAX || len + strlen(name) + 2 > sizeof c->path)
		return -ENAMETOOLONG;
	if (mkdirat(to, name, 0700) < 0)
		return -errno;
	autoclose int out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (out < 0 || in < 0)
		return -errno;
	snprintf(c->path + len, sizeof c->path - len, "%s/", name);
	int r = keeper_copy_directory(c, in, out, depth + 1);
	c->path[len] = '\0';
	return r;
}

static int keeper_copy_entry(struct copy *c, int from, int to, const char *name, unsigned depth)
{
	struct stat st;
	int r;
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	bool many = st.st_nlink > 1 && !S_ISDIR(st.st_mode);
	const char *first = many ? hard_links_find(&c->links, &st) : NULL;
	if (first)
		return linkat(c->root_fd, first, to, name, 0) < 0 ? -errno : 0;
	if (S_ISDIR(st.st_mode))
		r = keeper_copy_descend(c, from, to, name, depth);
	else if (S_ISREG(st.st_mode))
		r = copy_file(from, to, name, &st);
	else if (S_ISLNK(st.st_mode))
		r = copy_link(from, to, name);
	else
		r = mknodat(to, name, st.st_mode, st.st_rdev) < 0 ? -errno : 0;
	if (r == 0)
		r = keeper_copy_attributes(from, to, name, &st);
	return r == 0 && many ? hard_links_add(&c->links, &st, c->path, name) : r;
}

/* Takes `from`. */
static int keeper_copy_directory(struct copy *c, int from, int to, unsigned depth)
{
	DIR *dir = fdopendir(from);
	struct dirent *entry;
	int r = 0;
	if (!dir) {
		r = -errno;
		close(from);
		return r;
	}
	while (r == 0 && (entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = keeper_copy_entry(c, from, to, entry->d_name, depth);
	closedir(dir);
	return r;
}

int keeper_copy_tree(int from_fd, int to_fd)
{
	struct copy c = {.root_fd = to_fd};
	int from = openat(from_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = from < 0 ? -errno : keeper_copy_directory(&c, from, to_fd, 0);
	hard_links_finish(&c.links);
	return r;
}

bool copy_can_reflink(int dir_fd)
{
	autoclose int a = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	autoclose int b = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return a >= 0 && b >= 0 && write(a, "x", 1) == 1 && ioctl(b, FICLONE, a) == 0;
}
