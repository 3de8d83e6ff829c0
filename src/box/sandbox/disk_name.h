/* The keeper's names for disks. */
#pragma once

#include "base/error.h"
#include "wire/keeper.h"

struct box;
struct sandbox;

struct disk_name disk_named(enum disk_kind kind, const char *id);
/* Deletes a disk in the background. */
void disks_forget(struct box *b, enum disk_kind kind, const char *id);
/*
 * Sets aside, for a day, a disk that no row names; at start only. `then` may be NULL; error is 0
 * also when there was no disk.
 */
void disks_set_aside(struct box *b, enum disk_kind kind, const char *id,
	void (*then)(void *arg, int error), void *arg);
/* Describes a keeper's errno to a client. */
int disks_error(struct error *e, int error, const char *what);

/* The sandbox's own; and what it began with, or DISK_NONE. */
struct disk_name disk_of(const struct sandbox *s);
struct disk_name disk_to_begin_with(const struct sandbox *s);
