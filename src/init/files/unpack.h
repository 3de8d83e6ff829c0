/* Declarations shared by the archive formats. */
#pragma once

#include "init/files/files.h"

/* A directory's mode and time: set at the end, because its content needs it writable and changes
 * its time. */
struct later {
	uint32_t mode, uid, gid;
	uint32_t mtime_ns;
	int64_t mtime_s;
	size_t path; /* in the paths */
};

struct unpacking;

struct unpack_format {
	/* Calls unpack_take for each member. */
	int (*read)(struct unpacking *u);
	/* The member's content into fd, or, with -1, past it. */
	int (*take_content)(struct unpacking *u, int fd);
};

extern const struct unpack_format unpack_tar, unpack_zip;

struct unpacking {
	const struct file_request *request;
	struct outcome *outcome;
	const struct unpack_format *format;
	struct tar_member *member; /* being unpacked */
	void *reader;              /* the format's own */
	uint64_t data_left;        /* of the DATA record being read */
	bool ended;                /* of the input */
	int top;
	bool top_is_new;
	int parent; /* of the last member, with its path: the next one is often beside it */
	struct buf parent_path;
	struct later *later;
	size_t later_count, later_capacity;
	struct buf later_paths;
	struct buf absolute; /* of the target */
	bool is_layer;       /* of an image, see layer.c */
	struct timespec since;
	char *source; /* only what is there is wanted; NULL: all of it */
	uid_t uid;    /* of everything; -1: as the archive says, or whose we are */
	gid_t gid;
};

/* The archive's bytes, all of them. 1: the input has ended before the first of them. */
int unpack_input(struct unpacking *u, char *bytes, size_t len);
/* Reads between 1 and max bytes of the archive. Returns 0 at its end. */
ssize_t unpack_some_input(struct unpacking *u, char *bytes, size_t max);
/* The member, to where it belongs. */
int unpack_take(struct unpacking *u);
