/*
 * The root of a sandbox: its disk over a template, both seen through its uids. They are staged at
 * data/stage, where each boot has a mount namespace of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/inside.h"

/* A clone of a host directory, seen through the sandbox's uids, at data/stage/NAME. */
static int stage_tree(
	struct inside *in, int dir_fd, const char *source, const char *name, uint64_t attributes)
{
	autoclose int fd = mount_clone(dir_fd, source, *source ? 0 : AT_EMPTY_PATH);
	if (fd < 0)
		return fd;
	int r = mount_set_attributes(fd, attributes, in->b->userns_fd);
	return r < 0 ? r : mount_move_to(fd, name);
}

static int stage_layer(struct inside *in, const char *source, const char *name, uint64_t attributes)
{
	return stage_tree(in, AT_FDCWD, source, name, attributes);
}

/* Resolves the path without following links, because the unpacked layer may be hostile. */
static int stage_image(struct inside *in)
{
	char path[ID_SIZE + 16];
	snprintf(path, sizeof path, "%s/root/image", in->b->root);
	autoclose int layers = open("../disks/layers", O_PATH | O_DIRECTORY | O_CLOEXEC);
	autoclose int image = layers < 0 ? -errno : mount_open_point(layers, path);
	return image < 0 ? image : stage_tree(in, image, "", "skeleton", MOUNT_ATTR_RDONLY);
}

/*
 * Overlayfs works on its upper layer with the rights of whoever mounted it. The layer is idmapped,
 * so that must be a uid it knows: the sandbox's root, with all our capabilities back in force.
 */
int inside_act_as(uid_t uid)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	syscall(SYS_setfsgid, uid);
	syscall(SYS_setfsuid, uid);
	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(data); i++)
		data[i].effective = data[i].permitted;
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static bool is_read_only(int fd)
{
	struct statvfs fs;
	return fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_RDONLY);
}

/*
 * Called in data/stage, with relative names: they are what /proc/mounts shows inside. Not
 * volatile, because the disk is mounted again when a sandbox resumes.
 */
static int warden_root_overlay(struct inside *in, const char *lower, const char *upper)
{
	char upper_path[64], work_path[64];
	snprintf(upper_path, sizeof upper_path, "disk/%s", upper);
	snprintf(work_path, sizeof work_path, "disk/%s.work", upper);
	struct mount_option options[] = {{"source", "sandbox"}, {"lowerdir", lower},
		{"upperdir", upper_path}, {"workdir", work_path}, {"metacopy", "off"},
		{"redirect_dir", "on"}, {NULL, NULL}};
	int r = inside_act_as(in->b->uid_base);
	int fd = r < 0 ? r : mount_new("overlay", options, MOUNT_ATTR_NODEV);
	r = inside_act_as(0);
	if (r == 0 && fd >= 0 && is_read_only(fd))
		r = -ENOSPC; /* for its own directories; it would go on without writing */
	if (r < 0 && fd >= 0) {
		close(fd);
		return r;
	}
	return fd;
}

int step_layers(struct inside *in)
{
	char disk[64];
	snprintf(disk, sizeof disk, "../disks/boxes/%s", in->b->id);
	if (chdir(in->w->data) < 0 || chdir("stage") < 0)
		return -errno;
	int r = stage_layer(in, disk, "disk", 0);
	if (r == 0 && in->b->root[0])
		return stage_image(in);
	if (r == 0)
		r = stage_layer(in, in->w->disks.template_path, "skeleton", MOUNT_ATTR_RDONLY);
	if (r == 0)
		r = stage_layer(in, "/usr", "usr", MOUNT_ATTR_RDONLY);
	return r;
}

int step_root(struct inside *in)
{
	autoclose int fd = warden_root_overlay(in, "skeleton", "root");
	if (fd < 0)
		return fd;
	int r = mount_move_to(fd, "root");
	if (r < 0)
		return r;
	in->root_fd = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return in->root_fd < 0 ? -errno : 0;
}

/* An image brings its own. */
int step_usr(struct inside *in)
{
	if (in->b->root[0])
		return 0;
	autoclose int fd = warden_root_overlay(in, "usr", "usr");
	return fd < 0 ? fd : mount_move_below(fd, in->root_fd, "usr");
}
