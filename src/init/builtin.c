/*
 * File operations. Each runs in a child of init that has the sandbox user's rights, no descriptor
 * but its three pipes, and the sandbox's own view of the filesystem: there is no path to trick,
 * because there is nothing else to reach. It may block on what it meets; only its own request
 * waits.
 *
 *     write PATH MODE   stdin becomes the file's content; parents are made; MODE is octal
 */
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

static int builtin_write(const char *const *argv);

static const struct {
	const char *name;
	int (*run)(const char *const *argv);
} builtins[] = {
	{"write", builtin_write},
};

bool builtin_is_known(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(builtins); i++)
		if (strcmp(builtins[i].name, name) == 0)
			return true;
	return false;
}

int builtin_run(const char *const *argv)
{
	for (size_t i = 0; i < ARRAY_LEN(builtins); i++)
		if (strcmp(builtins[i].name, argv[0]) == 0)
			return -builtins[i].run(argv);
	return ENOSYS;
}

static int make_parents(const char *path)
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
		if (mkdir(prefix, 0755) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return 0;
}

static int copy_stdin(int fd)
{
	static char chunk[64 * 1024];
	for (;;) {
		ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		int r = fd_write_all(fd, chunk, (size_t)n);
		if (r < 0)
			return r;
	}
}

static int builtin_write(const char *const *argv)
{
	if (!argv[1] || !argv[2])
		return -EINVAL;
	mode_t mode = (mode_t)strtoul(argv[2], NULL, 8) & 07777;
	int r = make_parents(argv[1]);
	if (r < 0)
		return r;
	/* O_NONBLOCK: a FIFO without a reader answers ENXIO instead of waiting for one. */
	autoclose int fd =
		open(argv[1], O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode & 0777);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENXIO;
	if (ftruncate(fd, 0) < 0 || fchmod(fd, mode) < 0)
		return -errno;
	return copy_stdin(fd);
}
