/* How the keeper names disks. */
#pragma once

#include "base/error.h"
#include "wire/keeper.h"

struct box;
struct sandbox;

struct disk_name disk_named(enum disk_kind kind, const char *id);
/* Deletes a disk that nobody waits for. */
void disks_forget(struct box *b, enum disk_kind kind, const char *id);
/* A keeper's errno as somebody should read it. */
int disks_error(struct error *e, int error, const char *what);

/* The sandbox's own; and what it began with, or DISK_NONE. */
struct disk_name disk_of(const struct sandbox *s);
struct disk_name disk_to_begin_with(const struct sandbox *s);
