/* The keeper's names for a sandbox's disks, and errors about them. */
#include "box/sandbox/disk_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "box/sandbox/later.h"
#include "box/sandbox/object.h"

struct disk_name disk_named(enum disk_kind kind, const char *id)
{
	struct disk_name disk = {.kind = kind};
	memcpy(disk.id, id, strnlen(id, ID_LEN));
	return disk;
}

static void disk_name_forgotten(void *arg, const struct keeper_reply *reply)
{
	if (reply->error)
		log_error("cannot delete a disk", "error", strerror(reply->error));
	box_check_closed(arg);
}

void disks_forget(struct box *b, enum disk_kind kind, const char *id)
{
	struct disk_name disk = disk_named(kind, id);
	b->driver->disk_delete(b->driver, &disk, disk_name_forgotten, b);
}

struct set_aside {
	struct box *box;
	void (*then)(void *arg, int error);
	void *arg;
};

static void disks_were_set_aside(void *arg, const struct keeper_reply *reply)
{
	struct set_aside *a = arg;
	struct box *b = a->box;
	bool gone = reply->error == ENOENT;
	b->aside.done += reply->error == 0;
	if (reply->error && !gone)
		log_error("cannot set aside a disk that is in no row", "error",
			strerror(reply->error));
	if (--b->aside.pending == 0 && b->aside.done > 0) {
		log_warn("disks that are in no row were set aside for a day", "disks",
			log_num(b->aside.done));
		b->aside.done = 0;
	}
	if (a->then)
		a->then(a->arg, gone ? 0 : reply->error);
	free(a);
	box_check_closed(b);
}

void disks_set_aside(struct box *b, enum disk_kind kind, const char *id,
	void (*then)(void *arg, int error), void *arg)
{
	struct disk_name disk = disk_named(kind, id);
	struct set_aside *a = mem_new(sizeof *a);
	*a = (struct set_aside){b, then, arg};
	b->aside.pending++;
	b->driver->disk_set_aside(b->driver, &disk, disks_were_set_aside, a);
}

int disks_error(struct error *e, int error, const char *what)
{
	error_set_errno(e, error, "%s", what);
	if (error == ENOENT)
		e->code = ERROR_INTERNAL; /* of the disk, not of what the caller named */
	else if (error == ETIMEDOUT)
		error_set(e, ERROR_UNAVAILABLE, "%s: something in the sandbox does not stand still",
			what);
	return -1;
}

struct disk_name disk_of(const struct sandbox *s)
{
	struct disk_name disk = {.kind = DISK_BOX};
	memcpy(disk.id, s->id, ID_SIZE);
	return disk;
}

/* A snapshot was taken of all that a template had given. */
struct disk_name disk_to_begin_with(const struct sandbox *s)
{
	struct disk_name from = {.kind = DISK_NONE};
	if (s->snapshot[0] || s->layer[0]) {
		from.kind = s->snapshot[0] ? DISK_SNAPSHOT : DISK_LAYER;
		memcpy(from.id, s->snapshot[0] ? s->snapshot : s->layer, ID_SIZE);
	}
	return from;
}
