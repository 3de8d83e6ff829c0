/* Ownership you can grep: locals that own something say so, and giving it away is spelled out. */
#pragma once

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_closedir(DIR *const *dir)
{
	if (*dir)
		closedir(*dir);
}

#define autodir   __attribute__((cleanup(cleanup_closedir)))
#define autofree  __attribute__((cleanup(cleanup_free)))
#define autoclose __attribute__((cleanup(cleanup_close)))

static inline int take_fd(int *fd)
{
	int taken = *fd;
	*fd = -1;
	return taken;
}

#define take_ptr(p)                                                                                \
	({                                                                                         \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
