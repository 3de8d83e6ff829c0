/*
 * Files beside the database that keep some MiB of the file system for the rows that make room: ends
 * of sandboxes, and what is deleted. When the disk is full they are given up one by one, and made
 * again when there is room. Files, because a full btrfs lets us remove one, but not shorten it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct reserve {
	int dir_fd;        /* -1: there is none */
	unsigned pieces;   /* files that are there */
	int64_t filled_us; /* when that was tried last */
};

/* Never fails: without room there is none, or a smaller one. */
void reserve_open(struct reserve *r, const char *database);
/* Gives up a piece. Returns whether there was one. */
bool reserve_give(struct reserve *r);
/* Makes what lacks if there is room. Looks at most once a minute. */
void reserve_fill(struct reserve *r);
void reserve_close(struct reserve *r);
