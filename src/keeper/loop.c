/*
 * Loop devices. A device that an earlier server left, because sandboxes still stand on it, is found
 * by the file it belongs to and used again: a second one over the same file would tear it apart. A
 * new one is of the kind that disappears with its last user, so nothing has to be detached.
 */
#include "keeper/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LOOP_MAJOR   7
#define ATTACH_TRIES 64
#define SECTOR_SIZE  4096

/* /dev may be a minimal one, in which new devices get no node. */
static int open_device(int number, char path[32])
{
	snprintf(path, 32, "/dev/loop%d", number);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 || errno != ENOENT)
		return fd < 0 ? -errno : fd;
	if (mknod(path, S_IFBLK | 0600, makedev(LOOP_MAJOR, (unsigned)number)) < 0 &&
		errno != EEXIST)
		return -errno;
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool belongs_to(int fd, const struct stat *image)
{
	struct loop_info64 info;
	return ioctl(fd, LOOP_GET_STATUS64, &info) == 0 && info.lo_device == image->st_dev &&
	       info.lo_inode == image->st_ino;
}

static int find_attached(const struct stat *image, char path[32])
{
	DIR *dir = opendir("/sys/block");
	struct dirent *entry;
	int found = -ENOENT;
	while (dir && found < 0 && (entry = readdir(dir)) != NULL) {
		char backing[300];
		int number;
		if (sscanf(entry->d_name, "loop%d", &number) != 1)
			continue;
		snprintf(backing, sizeof backing, "/sys/block/%s/loop", entry->d_name);
		if (access(backing, F_OK) < 0)
			continue;
		autoclose int fd = open_device(number, path);
		if (fd >= 0 && belongs_to(fd, image))
			found = take_fd(&fd);
	}
	if (dir)
		closedir(dir);
	return found;
}

static int attach_new(int image_fd, char path[32])
{
	autoclose int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop_config config = {
		.fd = (uint32_t)image_fd,
		.block_size = SECTOR_SIZE,
		.info = {.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO},
	};
	if (control < 0)
		return -errno;
	for (int i = 0; i < ATTACH_TRIES; i++) {
		int number = ioctl(control, LOOP_CTL_GET_FREE);
		if (number < 0)
			return -errno;
		autoclose int fd = open_device(number, path);
		if (fd < 0)
			return fd;
		if (ioctl(fd, LOOP_CONFIGURE, &config) == 0)
			return take_fd(&fd);
		if (errno == EINVAL && (config.info.lo_flags & LO_FLAGS_DIRECT_IO))
			config.info.lo_flags &= ~(uint32_t)LO_FLAGS_DIRECT_IO;
		else if (errno != EBUSY) /* another process took the device */
			return -errno;
	}
	return -EBUSY;
}

int loop_attach(int image_fd, char path[32])
{
	struct stat image;
	if (fstat(image_fd, &image) < 0)
		return -errno;
	int fd = find_attached(&image, path);
	return fd == -ENOENT ? attach_new(image_fd, path) : fd;
}

int loop_resize(int loop_fd)
{
	return ioctl(loop_fd, LOOP_SET_CAPACITY, 0) < 0 ? -errno : 0;
}
