/*
 * What box asks of the host: sandboxes that are booted, stopped and measured, and their disks. It
 * is all that box knows about how a sandbox is isolated; what it needs besides is a stream to the
 * init inside (link/init_link.h).
 *
 * Answers are the values of wire/warden.h and wire/keeper.h, with 0 or an errno. Each comes once,
 * never before the call has returned; those that are open at a close are dropped. What an operation
 * does is described with its number there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "base/id.h"
#include "model/sandbox.h"
#include "wire/diff.h"
#include "wire/keeper.h"
#include "wire/warden.h"

struct driver;

typedef void warden_reply_fn(void *arg, const struct warden_reply *reply);
typedef void keeper_reply_fn(void *arg, const struct keeper_reply *reply);

/* What a sandbox is booted with. Its disk is there already. */
struct driver_boot {
	const char *id;
	const char *root; /* the layer that holds its root; "": that of `base` */
	const struct resources *limits;
	const struct warden_volume *volumes; /* WARDEN_VOLUMES_MAX of them */
	bool host_network;
	uint8_t boot_id[UUID_BYTES];
};

typedef void driver_sandbox_fn(struct driver *d, const char *id, warden_reply_fn *reply, void *arg);
typedef void driver_disk_fn(
	struct driver *d, const struct disk_name *disk, keeper_reply_fn *reply, void *arg);
typedef void driver_copy_fn(struct driver *d, const struct disk_name *disk,
	const struct disk_name *from, keeper_reply_fn *reply, void *arg);

struct driver {
	/* ---- sandboxes ---- */
	void (*hello)(struct driver *d, warden_reply_fn *reply, void *arg);
	void (*boot)(struct driver *d, const struct driver_boot *boot, warden_reply_fn *reply,
		void *arg);
	void (*limits)(struct driver *d, const char *id, const struct resources *limits,
		warden_reply_fn *reply, void *arg);
	driver_sandbox_fn *usage, *kill, *halt, *destroy, *freeze, *reclaim, *thaw;
	driver_sandbox_fn *next; /* "" asks for the first */
	/* A boot of this sandbox that has not begun is answered with ECANCELED, now. */
	void (*recall_boot)(struct driver *d, const char *id);

	/* ---- disks ---- */
	void (*disk_hello)(struct driver *d, keeper_reply_fn *reply, void *arg);
	/* from: what it begins with; NULL: nothing. */
	void (*disk_make)(struct driver *d, const struct disk_name *disk,
		const struct disk_name *from, int64_t limit, keeper_reply_fn *reply, void *arg);
	void (*disk_limit)(struct driver *d, const struct disk_name *disk, int64_t limit,
		keeper_reply_fn *reply, void *arg);
	driver_copy_fn *disk_keep, *disk_restore;
	driver_disk_fn *disk_delete, *disk_usage, *disk_measure;
	driver_disk_fn *disk_next; /* without an id: asks for the first of the kind */
	/* from may be NULL. The reply's pipe is the caller's. */
	void (*disk_diff)(struct driver *d, const struct disk_name *disk,
		const struct disk_name *from, const char *root, enum diff_form form,
		keeper_reply_fn *reply, void *arg);

	/* Whether any call has no answer yet. */
	bool (*is_busy)(const struct driver *d);
	/* The driver is freed before `closed` is called. */
	void (*close)(struct driver *d, void (*closed)(void *arg), void *arg);
};

/*
 * The one that is there: namespaces and cgroups by the warden, disks by the keeper. `lost` is
 * called when the warden is gone.
 */
int native_driver_open(struct driver **ret, uv_loop_t *loop, int warden_fd, int keeper_fd,
	void (*lost)(void *arg), void *arg, struct error *e);
