/*
 * Mounts by descriptor (fsopen, open_tree, move_mount). A mount point inside a sandbox's root is
 * opened with RESOLVE_IN_ROOT and without following links: what an earlier tenant of the disk left
 * there cannot send a mount elsewhere.
 *
 * Each call gives a descriptor or 0, or the negative error.
 */
#pragma once

#include <linux/mount.h>
#include <stdint.h>

struct mount_option {
	const char *key, *value; /* value NULL: a flag */
};

/* A new mount of a filesystem, detached; options end with a NULL key. */
int mount_new(const char *type, const struct mount_option *options, unsigned attributes);
/* Returns a detached clone of an existing mount; flags such as AT_EMPTY_PATH. */
int mount_clone(int dir_fd, const char *path, unsigned flags);
/* userns_fd: idmaps the mount through this namespace; -1: no idmapping. */
int mount_set_attributes(int fd, uint64_t set, int userns_fd);
/* A directory or file below a root, with nothing followed on the way. */
int mount_open_point(int dir_fd, const char *path);
int mount_move_onto(int fd, int target);
int mount_move_below(int fd, int dir_fd, const char *path);
/* To a path of the host's. */
int mount_move_to(int fd, const char *path);
/* A namespace whose only mount is empty and read-only; `path` is a directory that is used for a
 * moment to make it. */
int mount_empty_namespace(const char *path);
