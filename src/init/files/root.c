/*
 * ROOT: a tree that came from elsewhere becomes the root of sandboxes. What every sandbox needs is
 * put right: mount points that are directories, /tmp, the user `user` with a home, names of the
 * network that are this sandbox's own.
 *
 * The tree may hold links that lead anywhere: each path is looked up with the tree as its root, and
 * what is written is made new.
 */
#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define USER_NAME "user"
#define USER_ID   1000
#define TABLE_MAX (1u << 20)

static const struct {
	const char *parent, *name;
	mode_t mode;
	bool strict; /* a mount point: not even a link to a directory will do */
} directories[] = {
	{".", "dev", 0755, true},
	{".", "proc", 0555, true},
	{".", "sys", 0555, true},
	{".", "etc", 0755, false},
	{".", "tmp", 01777, false},
	{".", "run", 0755, false},
	{".", "root", 0700, false},
	{".", "home", 0755, false},
	{".", "var", 0755, false},
	{"var", "tmp", 01777, false},
};

static const struct {
	const char *name, *content; /* in /etc */
	bool only_if_missing;
} files[] = {
	{"hostname", "sandbox\n", false},
	{"hosts", "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost\n", false},
	{"resolv.conf", "nameserver 192.0.2.53\n", false},
	{"passwd", "root:x:0:0:root:/root:/bin/sh\n", true},
	{"group", "root:x:0:\n", true},
};

static int open_in(int root_fd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof how);
	return fd < 0 ? -errno : (int)fd;
}

static bool files_root_exists(int root_fd, const char *path)
{
	autoclose int fd = open_in(root_fd, path, O_PATH);
	return fd >= 0;
}

static int files_root_make_directory(
	int parent_fd, const char *name, mode_t mode, struct outcome *o)
{
	int r = remove_at(parent_fd, name, o);
	if (r < 0 && r != -ENOENT)
		return r;
	if (mkdirat(parent_fd, name, 0700) < 0 || fchmodat(parent_fd, name, mode, 0) < 0)
		return -errno;
	return 0;
}

static int files_root_make_directories(int root_fd, struct outcome *o)
{
	for (size_t i = 0; i < ARRAY_LEN(directories); i++) {
		const char *name = directories[i].name;
		autoclose int parent =
			open_in(root_fd, directories[i].parent, O_PATH | O_DIRECTORY);
		int flags = O_PATH | O_DIRECTORY | (directories[i].strict ? O_NOFOLLOW : 0);
		char path[32];
		snprintf(path, sizeof path, "%s/%s", directories[i].parent, name);
		autoclose int there = open_in(root_fd, path, flags);
		if (there >= 0)
			continue;
		int r = parent < 0
				? parent
				: files_root_make_directory(parent, name, directories[i].mode, o);
		if (r < 0)
			return serve_fail(o, r, path);
	}
	return 0;
}

/* Writes a file and replaces an existing entry. */
static int files_root_put_file(int dir_fd, const char *name, const char *content, size_t len,
	const struct stat *as, struct outcome *o)
{
	int r = remove_at(dir_fd, name, o);
	if (r < 0 && r != -ENOENT)
		return r;
	autoclose int fd =
		openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, content, len);
	if (r == 0 &&
		(fchown(fd, as->st_uid, as->st_gid) < 0 || fchmod(fd, as->st_mode & 07777) < 0))
		r = -errno;
	return r;
}

static int files_root_put_files(int root_fd, int etc_fd, struct outcome *o)
{
	static const struct stat plain = {.st_mode = 0644};
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		char path[32];
		snprintf(path, sizeof path, "etc/%s", files[i].name);
		if (files[i].only_if_missing && files_root_exists(root_fd, path))
			continue;
		int r = files_root_put_file(etc_fd, files[i].name, files[i].content,
			strlen(files[i].content), &plain, o);
		if (r < 0)
			return serve_fail(o, r, path);
	}
	return 0;
}

/* ---- the user ---- */

/* Whether a line begins with the name. */
static bool has_name(const struct buf *table, const char *name)
{
	size_t len = strlen(name);
	const char *at = table->data, *end = table->data + table->len;
	while (at < end) {
		if ((size_t)(end - at) > len && memcmp(at, name, len) == 0 && at[len] == ':')
			return true;
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		at = line_end ? line_end + 1 : end;
	}
	return false;
}

/* 1: there is no such table. */
static int read_table(int root_fd, const char *path, struct buf *table, struct stat *st)
{
	autoclose int fd = open_in(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fd == -ENOENT ? 1 : fd;
	if (fstat(fd, st) < 0)
		return -errno;
	return S_ISREG(st->st_mode) ? fd_read_all(fd, table, TABLE_MAX) : -ENXIO;
}

/* A line more, unless there is one of that name. */
static int files_root_add_line(
	int root_fd, int etc_fd, const char *name, const char *line, struct outcome *o)
{
	autobuf table = {0};
	struct stat st;
	char path[32];
	snprintf(path, sizeof path, "etc/%s", name);
	int r = read_table(root_fd, path, &table, &st);
	if (r != 0)
		return r < 0 ? serve_fail(o, r, path) : 0;
	if (has_name(&table, USER_NAME))
		return 0;
	if (table.len > 0 && table.data[table.len - 1] != '\n')
		buf_append_char(&table, '\n');
	buf_append_str(&table, line);
	r = table.failed ? -ENOMEM
			 : files_root_put_file(etc_fd, name, table.data, table.len, &st, o);
	return r < 0 ? serve_fail(o, r, path) : 0;
}

static int files_root_add_home(int root_fd)
{
	autoclose int home = open_in(root_fd, "home", O_PATH | O_DIRECTORY);
	if (home < 0)
		return home;
	if (mkdirat(home, USER_NAME, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	return fchownat(home, USER_NAME, USER_ID, USER_ID, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* Lets sudo, where there is one, ask for no password. */
static int allow_sudo(int root_fd, struct outcome *o)
{
	static const char line[] = USER_NAME " ALL=(ALL:ALL) NOPASSWD: ALL\n";
	static const struct stat as = {.st_mode = 0440};
	autoclose int dir = open_in(root_fd, "etc/sudoers.d", O_PATH | O_DIRECTORY);
	return dir < 0 ? 0 : files_root_put_file(dir, USER_NAME, line, sizeof line - 1, &as, o);
}

static int add_user(int root_fd, int etc_fd, struct outcome *o)
{
	char line[128];
	const char *shell = files_root_exists(root_fd, "bin/bash") ? "/bin/bash" : "/bin/sh";
	snprintf(line, sizeof line, USER_NAME ":x:%d:%d:" USER_NAME ":/home/" USER_NAME ":%s\n",
		USER_ID, USER_ID, shell);
	int r = files_root_add_line(root_fd, etc_fd, "passwd", line, o);
	snprintf(line, sizeof line, USER_NAME ":x:%d:\n", USER_ID);
	if (r == 0)
		r = files_root_add_line(root_fd, etc_fd, "group", line, o);
	if (r == 0)
		r = files_root_add_line(
			root_fd, etc_fd, "shadow", USER_NAME ":*:19000:0:99999:7:::\n", o);
	if (r == 0)
		r = files_root_add_home(root_fd);
	return r < 0 ? r : allow_sudo(root_fd, o);
}

int file_root(const struct file_request *r, struct outcome *o)
{
	autoclose int root =
		open(r->text[FILE_PATH], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0)
		return -errno;
	int e = files_root_make_directories(root, o);
	autoclose int etc = e < 0 ? e : open_in(root, "etc", O_PATH | O_DIRECTORY);
	if (etc < 0)
		return etc;
	e = files_root_put_files(root, etc, o);
	return e < 0 ? e : add_user(root, etc, o);
}
