/*
 * ROOT: a tree that came from elsewhere becomes the root of sandboxes. What every sandbox needs is
 * put right: mount points that are directories, /tmp, the user `user` with a home, names of the
 * network that are this sandbox's own.
 *
 * The tree may hold links that lead anywhere, so the work is done by a child that has it as its
 * root.
 */
#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define USER_NAME "user"
#define USER_ID   1000
#define TABLE_MAX (1u << 20)

static const struct {
	const char *path;
	mode_t mode;
	bool strict; /* a mount point: nothing but a directory will do */
} directories[] = {
	{"/dev", 0755, true},
	{"/proc", 0555, true},
	{"/sys", 0555, true},
	{"/etc", 0755, false},
	{"/tmp", 01777, false},
	{"/run", 0755, false},
	{"/root", 0700, false},
	{"/home", 0755, false},
	{"/var", 0755, false},
	{"/var/tmp", 01777, false},
};

static const struct {
	const char *path, *content;
	bool only_if_missing;
} files[] = {
	{"/etc/hostname", "sandbox\n", false},
	{"/etc/hosts", "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost\n", false},
	{"/etc/resolv.conf", "", false},
	{"/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n", true},
	{"/etc/group", "root:x:0:\n", true},
};

static int make_directories(struct outcome *o)
{
	for (size_t i = 0; i < ARRAY_LEN(directories); i++) {
		const char *path = directories[i].path;
		struct stat st;
		bool strict = directories[i].strict;
		bool there = (strict ? lstat(path, &st) : stat(path, &st)) == 0;
		if (there && S_ISDIR(st.st_mode))
			continue;
		int r = remove_at(AT_FDCWD, path, o);
		if (r < 0 && r != -ENOENT)
			return fail(o, r, path);
		if (mkdir(path, 0700) < 0 || chmod(path, directories[i].mode) < 0)
			return fail(o, -errno, path);
	}
	return 0;
}

/* A file in the place of whatever is there: links would be followed by those who mount over it. */
static int put_file(
	const char *path, const char *content, size_t len, mode_t mode, struct outcome *o)
{
	int r = remove_at(AT_FDCWD, path, o);
	if (r < 0 && r != -ENOENT)
		return r;
	autoclose int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, content, len);
	return r < 0 ? r : fchmod(fd, mode) < 0 ? -errno : 0;
}

static int put_files(struct outcome *o)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct stat st;
		if (files[i].only_if_missing && stat(files[i].path, &st) == 0)
			continue;
		int r = put_file(
			files[i].path, files[i].content, strlen(files[i].content), 0644, o);
		if (r < 0)
			return fail(o, r, files[i].path);
	}
	return 0;
}

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

/* A line more, unless there is one of that name. */
static int add_line(const char *path, const char *name, const char *line, struct outcome *o)
{
	autobuf table = {0};
	struct stat st;
	if (stat(path, &st) < 0 && errno == ENOENT)
		return 0;
	int r = fd_read_file_at(AT_FDCWD, path, &table, TABLE_MAX);
	if (r < 0)
		return fail(o, r, path);
	if (has_name(&table, name))
		return 0;
	if (table.len > 0 && table.data[table.len - 1] != '\n')
		buf_append_char(&table, '\n');
	buf_append_str(&table, line);
	r = table.failed ? -ENOMEM : put_file(path, table.data, table.len, st.st_mode & 07777, o);
	if (r == 0 && lchown(path, st.st_uid, st.st_gid) < 0)
		r = -errno;
	return r < 0 ? fail(o, r, path) : 0;
}

static int add_user(struct outcome *o)
{
	char line[128];
	const char *shell = access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
	snprintf(line, sizeof line, USER_NAME ":x:%d:%d:" USER_NAME ":/home/" USER_NAME ":%s\n",
		USER_ID, USER_ID, shell);
	int r = add_line("/etc/passwd", USER_NAME, line, o);
	if (r < 0)
		return r;
	snprintf(line, sizeof line, USER_NAME ":x:%d:\n", USER_ID);
	r = add_line("/etc/group", USER_NAME, line, o);
	if (r == 0)
		r = add_line("/etc/shadow", USER_NAME, USER_NAME ":*:19000:0:99999:7:::\n", o);
	if (r < 0)
		return r;
	if (mkdir("/home/" USER_NAME, 0755) == 0 && chown("/home/" USER_NAME, USER_ID, USER_ID) < 0)
		return -errno;
	static const char sudo[] = USER_NAME " ALL=(ALL:ALL) NOPASSWD: ALL\n";
	struct stat st;
	if (lstat("/etc/sudoers.d", &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	return put_file("/etc/sudoers.d/" USER_NAME, sudo, sizeof sudo - 1, 0440, o);
}

static int settle_root(struct outcome *o)
{
	umask(022);
	int r = make_directories(o);
	if (r == 0)
		r = put_files(o);
	return r < 0 ? r : add_user(o);
}

/* In the child; what is wrong is named through the pipe. */
static void become_root_of(const char *path, int report_fd)
{
	struct outcome o = {0};
	int r = chroot(path) < 0 || chdir("/") < 0 ? -errno : settle_root(&o);
	if (r < 0 && o.path.len > 0)
		fd_write_all(report_fd, o.path.data, o.path.len);
	_exit(-r);
}

int file_root(const struct file_request *r, struct outcome *o)
{
	char path[256];
	int report[2], status;
	if (pipe2(report, O_CLOEXEC) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0)
		become_root_of(r->text[FILE_PATH], report[1]);
	int error = errno;
	close(report[1]);
	if (pid < 0) {
		close(report[0]);
		return -error;
	}
	ssize_t n = read(report[0], path, sizeof path - 1);
	close(report[0]);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	path[n > 0 ? n : 0] = '\0';
	return fail(o, WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO,
		n > 0 ? path : r->text[FILE_PATH]);
}
