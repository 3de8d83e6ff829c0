/*
 * The walk over two views of one template, side by side. Where both show the same lower directory
 * only what is in an upper layer can differ, so most of the tree is never looked at. A file that
 * was copied up but is what it was is no change.
 *
 * The trees are hostile and one may be changing: memory does not grow with them, the depth is
 * bounded, and what vanishes in between is passed over.
 */
#include "keeper/diff.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define DEPTH_MAX 256
#define CHUNK     65536

static int keeper_diff_walk(
	struct diff *d, const struct view_dir *old, const struct view_dir *new, unsigned depth);

/* ---- are they the same? ---- */

int diff_open_file(const struct view_entry *e, const char *name)
{
	struct stat st;
	autoclose int fd =
		openat(e->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -ESTALE;
	return take_fd(&fd);
}

static ssize_t keeper_diff_read_full(int fd, char *out, size_t size, off_t at)
{
	size_t got = 0;
	while (got < size) {
		ssize_t n = pread(fd, out + got, size - got, at + (off_t)got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : (ssize_t)got;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

/* Returns the next offset from `at` on where either file has data, -1 if there is none. */
static off_t keeper_diff_next_data(int a, int b, off_t at)
{
	off_t one = lseek(a, at, SEEK_DATA), other = lseek(b, at, SEEK_DATA);
	if (one < 0 || other < 0)
		return one < 0 ? other : one;
	return one < other ? one : other;
}

/* Holes are passed over: a file of an exabyte costs nothing. */
static bool same_content(const struct view_entry *a, const struct view_entry *b, const char *name)
{
	char one[CHUNK], other[CHUNK];
	autoclose int fa = diff_open_file(a, name), fb = diff_open_file(b, name);
	if (fa < 0 || fb < 0)
		return false;
	for (off_t at = 0; (at = keeper_diff_next_data(fa, fb, at)) >= 0;) {
		ssize_t n = keeper_diff_read_full(fa, one, sizeof one, at);
		ssize_t m = keeper_diff_read_full(fb, other, sizeof other, at);
		if (n < 0 || n != m || memcmp(one, other, (size_t)n) != 0)
			return false;
		if (n == 0)
			return true;
		at += n;
	}
	return true;
}

static bool same_target(const struct view_entry *a, const struct view_entry *b, const char *name)
{
	char one[PATH_MAX], other[PATH_MAX];
	ssize_t n = readlinkat(a->dir_fd, name, one, sizeof one);
	ssize_t m = readlinkat(b->dir_fd, name, other, sizeof other);
	return n >= 0 && n == m && memcmp(one, other, (size_t)n) == 0;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Compares inode and change time, which a sandbox cannot set; holds across a snapshot, too. */
static bool is_untouched(const struct view_entry *a, const struct view_entry *b)
{
	return a->st.st_ino == b->st.st_ino && a->st.st_size == b->st.st_size &&
	       same_time(&a->st.st_ctim, &b->st.st_ctim) &&
	       same_time(&a->st.st_mtim, &b->st.st_mtim) && a->in_upper == b->in_upper;
}

static bool keeper_diff_is_same(
	const struct view_entry *a, const struct view_entry *b, const char *name)
{
	if (a->st.st_mode != b->st.st_mode || a->st.st_uid != b->st.st_uid ||
		a->st.st_gid != b->st.st_gid)
		return false;
	if (S_ISDIR(a->st.st_mode) || is_untouched(a, b))
		return true;
	if (S_ISREG(a->st.st_mode))
		return a->st.st_size == b->st.st_size && same_content(a, b, name);
	if (S_ISLNK(a->st.st_mode))
		return same_target(a, b, name);
	return a->st.st_rdev == b->st.st_rdev;
}

/* ---- one name ---- */

static int keeper_diff_tell(struct diff *d, enum diff_kind kind, const char *name,
	const struct view_entry *old, const struct view_entry *new)
{
	return d->change(d->arg, &(struct change){kind, d->path, name, old, new});
}

static int tell_difference(struct diff *d, const char *name, const struct view_entry *old,
	const struct view_entry *new)
{
	if (!old->exists)
		return keeper_diff_tell(d, DIFF_ADDED, name, old, new);
	if (!new->exists)
		return keeper_diff_tell(d, DIFF_DELETED, name, old, new);
	return keeper_diff_is_same(old, new, name)
		       ? 0
		       : keeper_diff_tell(d, DIFF_CHANGED, name, old, new);
}

static bool keeper_diff_is_directory(const struct view_entry *e)
{
	return e->exists && S_ISDIR(e->st.st_mode);
}

/* Entries below a deleted directory are reported only with tells_all. */
static int keeper_diff_descend(struct diff *d, const char *name, const struct view_dir *old_dir,
	const struct view_entry *old, const struct view_dir *new_dir, const struct view_entry *new,
	unsigned depth)
{
	struct view_dir below_old = {-1, -1, -1, false}, below_new = {-1, -1, -1, false};
	if (!keeper_diff_is_directory(new) && !(keeper_diff_is_directory(old) && d->tells_all))
		return 0;
	if (depth == DEPTH_MAX) {
		d->truncated = true;
		return 0;
	}
	int r = keeper_diff_is_directory(new) ? view_enter(d->new, new_dir, name, new, &below_new)
					      : 0;
	if (r == 0 && keeper_diff_is_directory(old))
		r = view_enter(d->old, old_dir, name, old, &below_old);
	if (r == 0)
		r = keeper_diff_walk(d, &below_old, &below_new, depth + 1);
	else if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
		r = 0; /* it went, or became something else, while we looked */
	view_dir_close(&below_old);
	view_dir_close(&below_new);
	return r;
}

static int keeper_diff_compare_name(struct diff *d, const char *name,
	const struct view_dir *old_dir, const struct view_dir *new_dir, unsigned depth)
{
	struct view_entry old, new;
	size_t len = strlen(d->path), name_len = strlen(name);
	if (len + name_len + 2 > sizeof d->path) {
		d->truncated = true;
		return 0;
	}
	view_look(d->old, old_dir, name, &old);
	view_look(d->new, new_dir, name, &new);
	if (!old.exists && !new.exists)
		return 0;
	d->path[len] = '/';
	memcpy(d->path + len + 1, name, name_len + 1);
	int r = tell_difference(d, name, &old, &new);
	if (r == 0)
		r = keeper_diff_descend(d, name, old_dir, &old, new_dir, &new, depth);
	d->path[len] = '\0';
	return r;
}

/* ---- all names of a directory ---- */

static bool is_in(int dir_fd, const char *name)
{
	struct stat st;
	return dir_fd >= 0 && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Compares the names in dir_fd that none of the directories in `before` has. */
static int compare_names_of(struct diff *d, int dir_fd, const int *before, size_t count,
	const struct view_dir *old, const struct view_dir *new, unsigned depth)
{
	if (dir_fd < 0)
		return 0;
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno; /* it was removed while we looked */
	DIR *dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	struct dirent *entry;
	int r = 0;
	while (r == 0 && (entry = readdir(dir)) != NULL) {
		const char *name = entry->d_name;
		bool seen = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
		for (size_t i = 0; i < count && !seen; i++)
			seen = is_in(before[i], name);
		if (!seen)
			r = keeper_diff_compare_name(d, name, old, new, depth);
	}
	closedir(dir);
	return r;
}

static bool same_directory(int a, int b)
{
	struct stat sa, sb;
	if (a < 0 || b < 0)
		return a < 0 && b < 0;
	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

static int keeper_diff_walk(
	struct diff *d, const struct view_dir *old, const struct view_dir *new, unsigned depth)
{
	const int dirs[] = {new->upper, old->upper, new->lower, old->lower};
	size_t count = same_directory(old->lower, new->lower) ? 2 : 4;
	int r = 0;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = compare_names_of(d, dirs[i], dirs, i, old, new, depth);
	/* /usr is an overlay of its own, which the upper layer of the root may not contain. */
	if (r == 0 && new->is_root && d->new->has_usr && !is_in(new->upper, "usr") &&
		!is_in(old->upper, "usr") && count == 2)
		r = keeper_diff_compare_name(d, "usr", old, new, depth);
	return r;
}

int diff_walk(struct diff *d)
{
	struct view_dir old = view_top(d->old), new = view_top(d->new);
	d->path[0] = '\0';
	return keeper_diff_walk(d, &old, &new, 0);
}
