/*
 * Unpacking a layer of an image: besides unpacking an archive, ".wh.NAME" removes NAME, and
 * ".wh..wh..opq" removes everything that its directory has from the layers below. Neither touches
 * entries of the same layer: those are recognized by their ctime, which no archive can set.
 */
#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

static const char whiteout[] = ".wh.", opaque[] = ".wh..wh..opq", reserved[] = ".wh..wh.";

void layer_begin(struct timespec *since)
{
	/* Waits one tick of the filesystem's coarse clock, so that existing files are older. */
	struct timespec tick = {.tv_nsec = 12 * 1000000};
	while (nanosleep(&tick, &tick) < 0 && errno == EINTR)
		;
	clock_gettime(CLOCK_REALTIME_COARSE, since);
}

static bool is_older(const struct stat *st, const struct timespec *since)
{
	return st->st_ctim.tv_sec < since->tv_sec ||
	       (st->st_ctim.tv_sec == since->tv_sec && st->st_ctim.tv_nsec < since->tv_nsec);
}

static int remove_older(
	int dir_fd, const char *name, const struct timespec *since, struct outcome *o)
{
	struct stat st;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return is_older(&st, since) ? remove_at(dir_fd, name, o) : 0;
}

static int empty_older(int dir_fd, const struct timespec *since, struct outcome *o)
{
	int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *entry;
	int r = 0;
	if (!dir)
		return -errno;
	while (r == 0 && (entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = remove_older(dirfd(dir), entry->d_name, since, o);
	closedir(dir);
	return r;
}

bool layer_is_whiteout(const char *name)
{
	return strncmp(name, whiteout, sizeof whiteout - 1) == 0;
}

int layer_apply_whiteout(
	int dir_fd, const char *name, const struct timespec *since, struct outcome *o)
{
	const char *hidden = name + sizeof whiteout - 1;
	if (strcmp(name, opaque) == 0)
		return empty_older(dir_fd, since, o);
	/* Other reserved names are notes of the tools that made the layer. */
	if (strncmp(name, reserved, sizeof reserved - 1) == 0)
		return 0;
	if (!hidden[0] || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0)
		return -EBADMSG;
	return remove_older(dir_fd, hidden, since, o);
}

int layer_make_room(int dir_fd, const char *name, bool for_directory, struct outcome *o)
{
	struct stat st;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (for_directory && S_ISDIR(st.st_mode))
		return 0;
	return remove_at(dir_fd, name, o);
}
