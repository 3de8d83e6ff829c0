/*
 * COPY and MOVE. A copy is made beside its destination and renamed into place when it is complete,
 * so that nobody sees half of it. A move is a rename; where the filesystem cannot do that (another
 * one, or a directory of a template's layer), it is a copy and a removal.
 */
#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

/* ---- one file ---- */

static int copy_by_buffer(int from, int to)
{
	static char chunk[256 * 1024];
	for (;;) {
		ssize_t n = read(from, chunk, sizeof chunk);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		int r = fd_write_all(to, chunk, (size_t)n);
		if (r < 0)
			return r;
	}
}

/* The filesystem may share the blocks. Files of size 0 may still have content (/proc). */
static int copy_content(int from, int to)
{
	for (bool first = true;; first = false) {
		ssize_t n = copy_file_range(from, NULL, to, NULL, 1u << 30, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 && !first)
			return 0;
		if (n > 0)
			continue;
		if (n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG))
			return -errno;
		return copy_by_buffer(from, to);
	}
}

void copy_attributes(int from, int to)
{
	char names[8 * 1024], value[16 * 1024];
	ssize_t len = flistxattr(from, names, sizeof names);
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1) {
		if (strncmp(names + at, "user.", 5) != 0)
			continue;
		ssize_t n = fgetxattr(from, names + at, value, sizeof value);
		if (n >= 0)
			(void)fsetxattr(to, names + at, value, (size_t)n, 0);
	}
}

/* Owner where we may, then mode, because the former takes set-id bits away, then times. */
static int copy_state(int to, const struct stat *st)
{
	bool owned = geteuid() == 0 && fchown(to, st->st_uid, st->st_gid) == 0;
	mode_t mode = st->st_mode & (owned || st->st_uid == geteuid() ? 07777 : 0777);
	struct timespec times[2] = {st->st_atim, st->st_mtim};
	return fchmod(to, mode) < 0 || futimens(to, times) < 0 ? -errno : 0;
}

static int copy_regular(int from_dir, const char *name, int to_dir, const char *new_name)
{
	struct stat st;
	autoclose int from =
		openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (from < 0 || fstat(from, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENXIO;
	autoclose int to = openat(
		to_dir, new_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	int r = copy_content(from, to);
	if (r < 0)
		return r;
	copy_attributes(from, to);
	return copy_state(to, &st);
}

/* Sets times and owner of a file that is not opened: a link or a FIFO. */
static int copy_state_at(int to_dir, const char *new_name, const struct stat *st)
{
	struct timespec times[2] = {st->st_atim, st->st_mtim};
	utimensat(to_dir, new_name, times, AT_SYMLINK_NOFOLLOW);
	if (geteuid() == 0 &&
		fchownat(to_dir, new_name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

static int copy_symlink(
	int from_dir, const char *name, int to_dir, const char *new_name, const struct stat *st)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(from_dir, name, target, sizeof target - 1);
	if (len < 0)
		return -errno;
	target[len] = '\0';
	if (symlinkat(target, to_dir, new_name) < 0)
		return -errno;
	return copy_state_at(to_dir, new_name, st);
}

static int copy_fifo(int to_dir, const char *new_name, const struct stat *st)
{
	if (mkfifoat(to_dir, new_name, st->st_mode & 0777) < 0)
		return -errno;
	return copy_state_at(to_dir, new_name, st);
}

/* Copies anything but a directory. Sockets are skipped: a copy would have no listener. */
static int copy_leaf(
	int from_dir, const char *name, int to_dir, const char *new_name, const struct stat *st)
{
	if (S_ISREG(st->st_mode))
		return copy_regular(from_dir, name, to_dir, new_name);
	if (S_ISLNK(st->st_mode))
		return copy_symlink(from_dir, name, to_dir, new_name, st);
	if (S_ISFIFO(st->st_mode))
		return copy_fifo(to_dir, new_name, st);
	return S_ISSOCK(st->st_mode) ? 0 : -EPERM;
}

/* ---- a tree ---- */

struct copying {
	struct walk from;
	struct dirs to;
	struct stat
		*states; /* of the directories we are in: their turn comes when they are complete */
	size_t capacity;
	struct hard_links links;
	int top; /* of the copy */
};

static int enter_both(struct copying *c, const char *name, const struct stat *st)
{
	int r = walk_enter(&c->from);
	if (r <= 0)
		return r;
	if (mkdirat(dirs_fd(&c->to), name, 0700) < 0)
		return -errno;
	if (c->to.depth == c->capacity) {
		size_t capacity = c->capacity * 2;
		struct stat *states = realloc(c->states, capacity * sizeof *states);
		if (!states)
			return -ENOMEM;
		c->states = states;
		c->capacity = capacity;
	}
	c->states[c->to.depth] = *st;
	return dirs_enter(&c->to, name);
}

static int leave_to(struct copying *c, size_t depth)
{
	int r = 0;
	while (r == 0 && c->to.depth > depth) {
		r = copy_state(dirs_fd(&c->to), &c->states[c->to.depth - 1]);
		if (r == 0 && c->to.depth == 1)
			break;
		if (r == 0)
			r = dirs_leave(&c->to);
	}
	return r;
}

static int files_copy_entry(struct copying *c)
{
	struct stat st;
	char name[NAME_MAX + 1];
	struct walk *w = &c->from;
	int r = leave_to(c, walk_depth(w) + 1);
	if (r < 0)
		return r;
	if (fstatat(walk_fd(w), w->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	snprintf(name, sizeof name, "%s", w->name);
	if (S_ISDIR(st.st_mode)) {
		w->type = DT_DIR;
		return enter_both(c, name, &st);
	}
	const char *seen = st.st_nlink > 1 ? hard_links_seen(&c->links, &st, w->path.data) : NULL;
	if (seen && linkat(c->top, seen, dirs_fd(&c->to), name, 0) == 0)
		return 0;
	return copy_leaf(walk_fd(w), name, dirs_fd(&c->to), name, &st);
}

static int copy_all(struct copying *c, struct outcome *o)
{
	int r;
	while ((r = walk_next(&c->from)) > 0) {
		r = files_copy_entry(c);
		if (r < 0)
			return serve_fail(o, r, c->from.path.data);
	}
	return r < 0 ? r : leave_to(c, 0);
}

/* The directory `from` as the new directory `to`. */
static int files_copy_directory(const char *from, const char *to, struct outcome *o)
{
	struct copying c = {.capacity = 16, .top = -1};
	int fd = open(from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = walk_open(&c.from, fd, "", SIZE_MAX);
	c.states = calloc(c.capacity, sizeof *c.states);
	if (r == 0 && !c.states)
		r = -ENOMEM;
	if (r == 0 && (fstat(fd, &c.states[0]) < 0 || mkdir(to, 0700) < 0))
		r = -errno;
	if (r == 0) {
		c.top = open(to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = c.top < 0 ? -errno : dirs_open(&c.to, dup(c.top));
	}
	if (r == 0)
		r = copy_all(&c, o);
	walk_finish(&c.from);
	dirs_finish(&c.to);
	hard_links_finish(&c.links);
	free(c.states);
	if (c.top >= 0)
		close(c.top);
	return r;
}

int copy_tree(const char *from, const char *to, struct outcome *o)
{
	struct stat st;
	if (lstat(from, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return files_copy_directory(from, to, o);
	return copy_leaf(AT_FDCWD, from, AT_FDCWD, to, &st);
}

/* ---- where to ---- */

char *path_beside(const char *path)
{
	char name[32];
	struct buf text = {0};
	const char *slash = strrchr(path, '/');
	random_name(name);
	buf_append(&text, path, slash ? (size_t)(slash - path) + 1 : 0);
	buf_append_str(&text, name);
	return buf_take_str(&text);
}

/* "a/b/" is "a/b". */
static char *without_slashes(const char *path)
{
	char *copy = strdup(path);
	size_t len = copy ? strlen(copy) : 0;
	while (len > 1 && copy[len - 1] == '/')
		copy[--len] = '\0';
	return copy;
}

/* -EINVAL: `to` would be below `from`, and a copy without end. */
static int check_not_below(const char *from, const char *to)
{
	struct stat top, at, above;
	autofree char *dir = strdup(to);
	if (lstat(from, &top) < 0)
		return -errno;
	if (!S_ISDIR(top.st_mode))
		return 0;
	char *slash = dir ? strrchr(dir, '/') : NULL;
	if (slash)
		slash[1] = '\0';
	autoclose int fd = open(slash ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &at) < 0)
		return -errno;
	for (;;) {
		if (at.st_dev == top.st_dev && at.st_ino == top.st_ino)
			return -EINVAL;
		int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (up < 0 || fstat(up, &above) < 0) {
			int error = -errno;
			if (up >= 0)
				close(up);
			return error;
		}
		bool is_root = above.st_dev == at.st_dev && above.st_ino == at.st_ino;
		close(fd);
		fd = up;
		at = above;
		if (is_root)
			return 0;
	}
}

static int rename_to(const char *from, const char *to, bool overwrite)
{
	if (overwrite)
		return rename(from, to) < 0 ? -errno : 0;
	if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL)
		return -errno;
	struct stat st; /* the filesystem cannot do it at once */
	if (lstat(to, &st) == 0)
		return -EEXIST;
	return rename(from, to) < 0 ? -errno : 0;
}

static int check_free(const char *to, bool overwrite)
{
	struct stat st;
	if (lstat(to, &st) == 0)
		return overwrite ? 0 : -EEXIST;
	return errno == ENOENT ? 0 : -errno;
}

static int copy_into_place(const char *from, const char *to, bool overwrite, struct outcome *o)
{
	autofree char *beside = path_beside(to);
	int r = beside ? check_not_below(from, to) : -ENOMEM;
	if (r == 0)
		r = copy_tree(from, beside, o);
	if (r == 0)
		r = rename_to(beside, to, overwrite);
	if (r < 0 && beside) {
		struct outcome ignored = {0};
		remove_tree(beside, &ignored);
		buf_finish(&ignored.path);
	}
	return r;
}

static int files_copy_move(const char *from, const char *to, bool overwrite, struct outcome *o)
{
	int r = rename_to(from, to, overwrite);
	if (r != -EXDEV)
		return r;
	r = copy_into_place(from, to, overwrite, o);
	return r < 0 ? r : remove_tree(from, o);
}

typedef int transfer_fn(const char *from, const char *to, bool overwrite, struct outcome *o);

static int files_copy_transfer(const struct file_request *r, transfer_fn *run, struct outcome *o)
{
	bool overwrite = (r->fixed.flags & FILE_OVERWRITE) != 0;
	autofree char *from = without_slashes(r->text[FILE_PATH]);
	autofree char *to = without_slashes(r->text[FILE_OTHER]);
	struct stat st;
	uid_t uid;
	gid_t gid;
	if (!from || !to)
		return -ENOMEM;
	if (lstat(from, &st) < 0)
		return serve_fail(o, -errno, from);
	if (r->fixed.flags & FILE_PARENTS) {
		int e = owner_parse(r->text[FILE_OWNER], strlen(r->text[FILE_OWNER]), &uid, &gid);
		if (e == 0)
			e = make_parents(to, uid, gid);
		if (e < 0)
			return serve_fail(o, e, to);
	}
	int e = check_free(to, overwrite);
	if (e == 0)
		e = run(from, to, overwrite, o);
	if (e < 0)
		return serve_fail(o, e, to);
	return put_entry_of(r, to, false);
}

int file_move(const struct file_request *r, struct outcome *o)
{
	return files_copy_transfer(r, files_copy_move, o);
}

int file_copy(const struct file_request *r, struct outcome *o)
{
	struct stat st;
	if (lstat(r->text[FILE_PATH], &st) == 0 && S_ISDIR(st.st_mode) &&
		!(r->fixed.flags & FILE_RECURSIVE))
		return -EISDIR;
	return files_copy_transfer(r, copy_into_place, o);
}
