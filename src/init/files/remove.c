/*
 * REMOVE: a file, or a directory with everything below. Nothing is remembered on the way down, so a
 * tree may have any depth: each directory is read again from its beginning until it is empty.
 */
#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct linux_dirent {
	uint64_t ino;
	int64_t offset;
	unsigned short size;
	unsigned char type;
	char name[];
};

enum emptied {
	EMPTIED,   /* nothing is left in it */
	DESCENDED, /* we are one level further down */
	REMOVED    /* something went; look again */
};

/* Removes one entry, or enters it if it is a directory that is not empty. */
static int remove_entry(struct dirs *d, const struct linux_dirent *e, struct outcome *o)
{
	int fd = dirs_fd(d);
	if (e->type != DT_DIR) {
		if (unlinkat(fd, e->name, 0) == 0 || errno == ENOENT)
			return REMOVED;
		if (errno != EISDIR && errno != EPERM)
			return serve_fail(o, -errno, e->name);
		int error = errno;
		struct stat st;
		if (fstatat(fd, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
			return serve_fail(o, -error, e->name);
	}
	if (unlinkat(fd, e->name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return REMOVED;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return serve_fail(o, -errno, e->name);
	int r = dirs_enter(d, e->name);
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
		return REMOVED;
	return r < 0 ? serve_fail(o, r, e->name) : DESCENDED;
}

/* From the directory's beginning, until it is empty or something in it must be emptied first. */
static int empty_once(struct dirs *d, struct outcome *o)
{
	_Alignas(8) char entries[32 * 1024];
	int result = EMPTIED, fd = dirs_fd(d);
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	for (;;) {
		long n = syscall(SYS_getdents64, fd, entries, sizeof entries);
		if (n <= 0)
			return n < 0 ? -errno : result;
		for (long at = 0; at < n;) {
			const struct linux_dirent *e = (const void *)(entries + at);
			at += e->size;
			if (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0)
				continue;
			result = remove_entry(d, e, o);
			if (result < 0 || result == DESCENDED)
				return result;
		}
	}
}

static int empty_tree(int fd, struct outcome *o)
{
	struct dirs d;
	int r = dirs_open(&d, fd);
	while (r >= 0) {
		r = empty_once(&d, o);
		if (r != EMPTIED)
			continue;
		if (d.depth == 1)
			break;
		r = dirs_leave(&d);
	}
	dirs_finish(&d);
	return r < 0 ? r : 0;
}

int remove_at(int dir_fd, const char *path, struct outcome *o)
{
	if (unlinkat(dir_fd, path, 0) == 0)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	int error = errno;
	int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? -error : -errno;
	int r = empty_tree(fd, o);
	if (r < 0)
		return r;
	return unlinkat(dir_fd, path, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int remove_tree(const char *path, struct outcome *o)
{
	return remove_at(AT_FDCWD, path, o);
}

static int remove_single(const char *path)
{
	struct stat st;
	if (lstat(path, &st) < 0)
		return -errno;
	return unlinkat(AT_FDCWD, path, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
}

int file_remove(const struct file_request *r, struct outcome *o)
{
	const char *path = r->text[FILE_PATH];
	int e = r->fixed.flags & FILE_RECURSIVE ? remove_tree(path, o) : remove_single(path);
	return e == -ENOENT && (r->fixed.flags & FILE_EXIST_OK) ? 0 : e;
}
