/*
 * What the warden itself does with disks: it finds one by its id to boot on, and moves one out of
 * sight when its sandbox is destroyed. Making, copying and taking apart is the keeper's and the
 * sweeper's work.
 */
#include "warden/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "wire/keeper.h"

static int warden_disk_make_dir(int parent, const char *name, mode_t mode)
{
	if (mkdirat(parent, name, mode) < 0 && errno != EEXIST)
		return -errno;
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	if (fchown(fd, 0, 0) < 0 || fchmod(fd, mode) < 0) {
		close(fd);
		return -errno;
	}
	return fd;
}

int disk_make_directories(struct warden *w, struct error *e)
{
	w->data_fd = open(w->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->data_fd < 0)
		return error_set_errno(e, errno, "cannot open %s", w->data);
	w->run_fd = warden_disk_make_dir(w->data_fd, "run", 0711);
	autoclose int stage = warden_disk_make_dir(w->data_fd, "stage", 0700);
	if (w->run_fd < 0 || stage < 0)
		return error_set(
			e, ERROR_INTERNAL, "cannot make the directories below %s", w->data);
	static const char *const mounts[] = {"disk", "skeleton", "usr", "root"};
	for (size_t i = 0; i < ARRAY_LEN(mounts); i++) {
		int fd = warden_disk_make_dir(stage, mounts[i], 0755);
		if (fd < 0)
			return error_set_errno(
				e, fd, "cannot make %s/stage/%s", w->data, mounts[i]);
		close(fd);
	}
	return 0;
}

bool disk_exists(const struct warden *w, const char *id)
{
	struct stat st;
	return fstatat(w->disks.boxes_fd, id, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* A rename needs room, which a full btrfs does not have; taking a subvolume apart needs none. */
static bool destroy_in_place(int dir_fd, const char *id)
{
	struct btrfs_ioctl_vol_args args = {0};
	snprintf(args.name, sizeof args.name, "%s", id);
	return ioctl(dir_fd, BTRFS_IOC_SNAP_DESTROY, &args) == 0;
}

void disk_discard(struct warden *w, const char *id)
{
	if (renameat(w->disks.boxes_fd, id, w->disks.trash_fd, id) < 0 &&
		(errno == ENOENT || !destroy_in_place(w->disks.boxes_fd, id))) {
		if (errno != ENOENT)
			log_warn("cannot move a sandbox's disk to the trash", "sandbox", id,
				"error", strerror(errno));
		return;
	}
	/* A full socket means that the sweeper has been told already. */
	if (send(w->disks.sweeper_fd, (char[]){SWEEPER_TRASH}, 1, MSG_DONTWAIT | MSG_NOSIGNAL) <
			0 &&
		errno != EAGAIN)
		log_warn("the sweeper is gone", "error", strerror(errno));
}

/* If the sweeper cannot keep up, what is sent is closed here and now. */
static void send_to_sweeper(struct warden *w, char what, int fd)
{
	if (fd < 0)
		return;
	int r = fd_send(w->disks.sweeper_fd, &what, 1, fd, MSG_DONTWAIT);
	if (r < 0)
		log_debug("the sweeper is busy", "error", strerror(-r));
	close(fd);
}

void disk_release_mounts(struct warden *w, int mounts_fd)
{
	send_to_sweeper(w, SWEEPER_MOUNTS, mounts_fd);
}

void disk_reclaim(struct warden *w, int file_fd)
{
	send_to_sweeper(w, SWEEPER_RECLAIM, file_fd);
}
