#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int *dirs_slot(struct dirs *d, size_t depth)
{
	return &d->fds[depth % DIRS_OPEN];
}

/* Takes fd. */
static int dirs_push(struct dirs *d, int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0) {
		int error = -errno;
		close(fd);
		return error;
	}
	if (d->depth == d->capacity) {
		size_t capacity = d->capacity ? d->capacity * 2 : 64;
		struct dir_id *levels = realloc(d->levels, capacity * sizeof *levels);
		if (!levels) {
			close(fd);
			return -ENOMEM;
		}
		d->levels = levels;
		d->capacity = capacity;
	}
	if (*dirs_slot(d, d->depth) >= 0)
		close(*dirs_slot(d, d->depth));
	*dirs_slot(d, d->depth) = fd;
	d->levels[d->depth++] = (struct dir_id){st.st_dev, st.st_ino};
	return 0;
}

int dirs_open(struct dirs *d, int fd)
{
	*d = (struct dirs){0};
	for (int i = 0; i < DIRS_OPEN; i++)
		d->fds[i] = -1;
	return dirs_push(d, fd);
}

void dirs_finish(struct dirs *d)
{
	for (int i = 0; i < DIRS_OPEN; i++)
		if (d->capacity && d->fds[i] >= 0)
			close(d->fds[i]);
	free(d->levels);
	*d = (struct dirs){0};
}

int dirs_fd(const struct dirs *d)
{
	return d->fds[(d->depth - 1) % DIRS_OPEN];
}

int dirs_enter(struct dirs *d, const char *name)
{
	int fd = openat(dirs_fd(d), name, DIR_FLAGS);
	return fd < 0 ? -errno : dirs_push(d, fd);
}

/* The directory above was closed on the way down. */
static int reopen_parent(struct dirs *d)
{
	struct stat st;
	const struct dir_id *wanted = &d->levels[d->depth - 2];
	int fd = openat(dirs_fd(d), "..", DIR_FLAGS);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || st.st_dev != wanted->dev || st.st_ino != wanted->ino) {
		close(fd);
		return -ESTALE;
	}
	*dirs_slot(d, d->depth - 2) = fd;
	return 0;
}

int dirs_leave(struct dirs *d)
{
	int r = *dirs_slot(d, d->depth - 2) < 0 ? reopen_parent(d) : 0;
	if (r < 0)
		return r;
	close(*dirs_slot(d, d->depth - 1));
	*dirs_slot(d, d->depth - 1) = -1;
	d->depth--;
	return 0;
}
