/*
 * The warden's own mount namespace. Every mount in it is copied and thrown away for each sandbox
 * (2.4 µs each), so only those that we need stay.
 */
#include "warden/warden.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include <fcntl.h>

static bool is_at_or_above(const char *mount_point, const char *path)
{
	size_t len = strlen(mount_point);
	if (strcmp(mount_point, "/") == 0)
		return true;
	return strncmp(path, mount_point, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static bool is_needed(const char *mount_point, const char *data)
{
	return is_at_or_above(mount_point, data) || is_at_or_above(mount_point, "/usr") ||
	       is_at_or_above(mount_point, "/proc") || is_at_or_above(mount_point, "/run") ||
	       strcmp(mount_point, "/sys") == 0 || strcmp(mount_point, "/dev") == 0 ||
	       strncmp(mount_point, "/sys/fs/cgroup", strlen("/sys/fs/cgroup")) == 0;
}

/* "\040" and the like, as mountinfo writes spaces; in place. */
static void host_unescape(char *s)
{
	char *out = s;
	for (; *s; s++) {
		if (s[0] == '\\' && s[1] && s[2] && s[3]) {
			*out++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 3;
		} else {
			*out++ = *s;
		}
	}
	*out = '\0';
}

/* The fifth field of a line of mountinfo. */
static char *mount_point_of(char *line)
{
	char *save = NULL, *field = strtok_r(line, " ", &save);
	for (int i = 0; field && i < 4; i++)
		field = strtok_r(NULL, " ", &save);
	if (field)
		host_unescape(field);
	return field;
}

static void drop_unneeded(char *mountinfo, const char *data)
{
	/* From the last line up, so that what is mounted on top goes first. */
	for (char *end = mountinfo + strlen(mountinfo); end > mountinfo;) {
		char *line = end;
		while (line > mountinfo && line[-1] != '\n')
			line--;
		char *point = mount_point_of(line);
		if (point && !is_needed(point, data))
			umount2(point, MNT_DETACH);
		end = line > mountinfo ? line - 1 : mountinfo;
		*end = '\0';
	}
}

int host_enter_private_mounts(const char *data, struct error *e)
{
	autobuf info = {0};
	if (unshare(CLONE_NEWNS) < 0)
		return error_set_errno(e, errno, "cannot make a mount namespace (unshare)");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return error_set_errno(e, errno, "cannot make the mounts private");
	int r = fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", &info, 16u << 20);
	buf_append_char(&info, '\0');
	if (r < 0 || info.failed)
		return error_set_errno(e, r, "cannot read /proc/self/mountinfo");
	drop_unneeded(info.data, data);
	return 0;
}
