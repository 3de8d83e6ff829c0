/*
 * Files of a sandbox as data: what file operations (wire/record.h) tell, and what is to be written.
 * Texts are borrowed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/record.h"

/* The metadata of a file. Names are as the filesystem has them: any bytes but NUL. */
struct file_entry {
	const char *path;          /* absolute */
	const char *target;        /* of a link; "": it is none */
	const char *owner, *group; /* "": not asked for, or they have no name */
	uint64_t size, inode;
	uint32_t mode, uid, gid, links;
	int64_t mtime_ns, atime_ns, ctime_ns;
};

struct file_match {
	const char *path;
	uint64_t line;
	uint32_t column;
	const char *text;
	size_t text_len;
	bool cut; /* the line is longer */
};

struct file_attribute {
	const char *name; /* without "user." */
	const char *value;
	size_t len;
};

struct file_change {
	const char *path;
	uint64_t count;
};

struct file_notice {
	enum file_event kind;
	bool directory;
	const char *path;        /* relative to what is watched; "": that itself */
	const char *destination; /* of a rename */
};

/* The directory and user of a watch. */
struct watch_spec {
	const char *user; /* NULL: the sandbox's */
	const char *path, *cwd;
	/* With root's rights, where paths of `user` begin: cwd does not count. */
	bool as_root;
	bool recursive;
	bool entries; /* what a notice is about is told with it, if it is still there */
};

/* The format of a requested archive: all but the last are tar. */
enum archive_coding {
	ARCHIVE_PLAIN,
	ARCHIVE_GZIP,
	ARCHIVE_ZSTD,
	ARCHIVE_ZIP
};

struct file_result {
	uint64_t count;
	bool truncated; /* there is more than the limit asked for */
};

/* A file to be written. */
struct file_target {
	const char *path;
	unsigned flags; /* FILE_PARENTS, _APPEND, _AT_OFFSET, _ATOMIC, _EXCLUSIVE, _HAS_MODE */
	unsigned mode;
	uint64_t offset;
	const char *owner; /* NULL: as it comes */
};

/* A small file with its whole content. */
struct file_spec {
	const char *path; /* absolute, or relative to the working directory */
	const char *content;
	size_t len;
	bool has_mode;
	unsigned mode;
};
