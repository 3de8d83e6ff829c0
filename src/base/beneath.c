#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define TRIES 64

int beneath_open(int top, const char *path, int flags, enum beneath_links links)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.resolve = (links == BENEATH_IS_ROOT ? RESOLVE_IN_ROOT : RESOLVE_BENEATH) |
			   RESOLVE_NO_MAGICLINKS,
	};
	long fd = -1;
	errno = EAGAIN; /* returned while another process renames below `top` */
	for (int i = 0; fd < 0 && errno == EAGAIN && i < TRIES; i++)
		fd = syscall(SYS_openat2, top, path[0] ? path : ".", &how, sizeof how);
	return fd < 0 ? -errno : (int)fd;
}

int beneath_make(int top, const char *path, enum beneath_links links)
{
	int fd = beneath_open(top, path, O_PATH | O_DIRECTORY, links);
	if (fd != -ENOENT)
		return fd;
	autofree char *prefix = strdup(path);
	autoclose int at = beneath_open(top, "", O_PATH | O_DIRECTORY, links);
	if (!prefix || at < 0)
		return prefix ? at : -ENOMEM;
	for (char *p = prefix;;) {
		size_t len = strcspn(p, "/");
		char *name = p, saved = p[len];
		p[len] = '\0';
		if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
			return -errno;
		fd = beneath_open(top, prefix, O_PATH | O_DIRECTORY, links);
		if (fd < 0 || saved == '\0')
			return fd;
		close(at);
		at = fd;
		p[len] = saved;
		p += len + 1;
	}
}
