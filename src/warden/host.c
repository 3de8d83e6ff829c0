/*
 * The warden's own mount namespace. Every mount in it is copied and thrown away for each sandbox
 * (2.4 µs each), so only those that we need stay.
 */
#include "warden/warden.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mount.h"
#include "base/mount_points.h"

static bool is_needed(const char *mount_point, const char *data)
{
	return mount_point_holds(mount_point, data) || mount_point_holds(mount_point, "/usr") ||
	       mount_point_holds(mount_point, "/proc") || mount_point_holds(mount_point, "/run") ||
	       strcmp(mount_point, "/sys") == 0 || strcmp(mount_point, "/dev") == 0 ||
	       strncmp(mount_point, "/sys/fs/cgroup", strlen("/sys/fs/cgroup")) == 0;
}

int host_make_empty_mounts(struct warden *w, struct error *e)
{
	char path[WARDEN_PATH_MAX];
	snprintf(path, sizeof path, "%s/stage/root", w->data);
	w->empty_mounts_fd = mount_empty_namespace(path);
	return w->empty_mounts_fd < 0 ? error_set_errno(e, w->empty_mounts_fd,
						"cannot make an empty mount namespace")
				      : 0;
}

int host_enter_private_mounts(struct warden *w, struct error *e)
{
	autobuf points = {0};
	if (unshare(CLONE_NEWNS) < 0)
		return error_set_errno(e, errno, "cannot make a mount namespace (unshare)");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return error_set_errno(e, errno, "cannot make the mounts private");
	int r = mount_points_read(&points);
	if (r < 0)
		return error_set_errno(e, r, "cannot read /proc/self/mountinfo");
	/* From the last one up, so that what is mounted on top goes first. */
	for (const char *p = mount_points_before(&points, NULL); p;
		p = mount_points_before(&points, p))
		if (!is_needed(p, w->data))
			umount2(p, MNT_DETACH);
	return 0;
}
