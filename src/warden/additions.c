/* Mounts the additions to a root: volumes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/inside.h"

/*
 * A directory inside, made if it is missing, as the sandbox's root. No link is followed: who left
 * one in the way does not get this mount, and the boot says so.
 */
static int open_mount_point(struct inside *in, const char *path)
{
	char part[WARDEN_MOUNT_SIZE];
	int at = openat(in->root_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (at >= 0 && *path) {
		size_t len = strcspn(++path, "/");
		snprintf(part, sizeof part, "%.*s", (int)len, path);
		if (mkdirat(at, part, 0755) < 0 && errno != EEXIST) {
			close(at);
			return -errno;
		}
		int next = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(at);
		at = next;
		path += len;
	}
	return at < 0 ? -errno : at;
}

static int mount_volume(struct inside *in, const struct warden_volume *v)
{
	char source[ID_SIZE + 8];
	snprintf(source, sizeof source, "%s/data", v->id);
	autoclose int volumes = open("../disks/volumes", O_PATH | O_DIRECTORY | O_CLOEXEC);
	autoclose int data = volumes < 0 ? -errno : mount_open_point(volumes, source);
	autoclose int tree = data < 0 ? data : mount_clone(data, "", AT_EMPTY_PATH);
	if (tree < 0)
		return tree;
	int r = mount_set_attributes(tree,
		MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | (v->read_only ? MOUNT_ATTR_RDONLY : 0),
		in->b->userns_fd);
	if (r == 0)
		r = inside_act_as(in->b->uid_base);
	autoclose int target = r < 0 ? r : open_mount_point(in, v->path);
	r = inside_act_as(0);
	if (target < 0 || r < 0)
		return target < 0 ? target : r;
	return mount_move_onto(tree, target);
}

int step_volumes(struct inside *in)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < WARDEN_VOLUMES_MAX; i++)
		if (in->b->volumes && in->b->volumes[i].id[0])
			r = mount_volume(in, &in->b->volumes[i]);
	return r;
}
