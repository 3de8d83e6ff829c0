/*
 * The formats of archives, without touching a file: POSIX ustar with pax extended headers, written
 * and read, and GNU's long names, read. Numbers that do not fit, lengths that cannot be, checksums
 * that are wrong and headers without end are refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define TAR_BLOCK 512u

struct tar_member {
	char type; /* '0' file, '1' hard link, '2' link, '3' '4' device, '5' directory, '6' FIFO */
	uint64_t size;
	uint32_t mode, uid, gid;
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t major, minor;
	bool plain; /* a name ".wh.…" is a file's real name, not a whiteout; stored in a private pax
		       record */
	struct buf path, target; /* NUL behind */
};

void tar_member_finish(struct tar_member *m);
/* The member's header, with an extended one in front where the old format is too small. */
void tar_append_header(struct buf *out, const struct tar_member *m);

struct tar_reader {
	int (*read)(void *arg, char *bytes,
		size_t len); /* all of it, or negative; 1: there is no more */
	void *arg;
	struct tar_member member;
	struct buf long_path, long_target; /* for the next member, from an extended header */
	int64_t next_size, next_mtime_s;
	int64_t next_uid, next_gid;
	uint32_t next_mtime_ns;
	bool next_plain;
};

/* 1: a member, whose content follows padded to a block; 0: the end; -EBADMSG: it is no archive. */
int tar_next(struct tar_reader *t);
void tar_reader_finish(struct tar_reader *t);
/* In place: no ".", no doubled or trailing slash; "" is the top. false: absolute, or with "..". */
bool tar_clean_path(char *path);
