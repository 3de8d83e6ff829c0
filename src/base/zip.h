/*
 * Zip archives, as their directory at the end tells them, without touching a file. Content is
 * stored or deflated; archives on several disks, encrypted ones and those with something in front
 * are refused, and so is whatever points out of the archive. Zip64 is read.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"

enum zip_method {
	ZIP_STORED = 0,
	ZIP_DEFLATED = 8
};

struct zip_entry {
	struct buf name; /* NUL behind; ends with a slash: a directory */
	unsigned method; /* enum zip_method */
	uint32_t crc;
	uint64_t packed, size;
	uint32_t mode; /* with its type; 0: the maker's system has none */
	int64_t mtime_s;
	uint64_t header_at;
};

struct zip_reader {
	/* Exactly so many bytes, from a place below size; or a negative error. */
	int (*read_at)(void *arg, uint64_t at, void *bytes, size_t len);
	void *arg;
	uint64_t size; /* of the archive */
	uint64_t directory_at, directory_end;
	uint64_t at, left; /* in the directory */
	struct zip_entry entry;
};

/* Finds the directory; -EBADMSG: there is none. Also to begin anew. */
int zip_open(struct zip_reader *z);
/* 1: an entry; 0: the end; -EBADMSG: damaged, or of a kind that is not read. */
int zip_next(struct zip_reader *z);
void zip_reader_finish(struct zip_reader *z);
/* Finds where the entry's content begins. */
int zip_find_content(struct zip_reader *z, uint64_t *at);

uint32_t zip_crc(uint32_t crc, const void *bytes, size_t len);
