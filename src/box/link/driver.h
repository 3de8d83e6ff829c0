/*
 * The operations that box asks of the host: boot, stop and measure sandboxes, and work on their
 * disks. This is all that box knows about how a sandbox is isolated; besides it needs a stream to
 * the init inside (link/init_link.h).
 *
 * Answers are the values of wire/warden.h and wire/keeper.h, with 0 or an errno. Each comes once,
 * never before the call has returned; those that are open at a close are dropped. Each operation is
 * described with its number there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "base/id.h"
#include "model/sandbox.h"
#include "box/link/egress_link.h"
#include "wire/diff.h"
#include "wire/keeper.h"
#include "wire/network.h"
#include "wire/warden.h"

struct driver;

typedef void warden_reply_fn(void *arg, const struct warden_reply *reply);
typedef void keeper_reply_fn(void *arg, const struct keeper_reply *reply);
typedef void network_reply_fn(void *arg, const struct network_reply *reply);

/* The parameters of a boot. The sandbox's disk is there already. */
struct driver_boot {
	const char *id;
	const char *root; /* the layer that holds its root; "": that of `base` */
	const struct resources *limits;
	const struct warden_volume *volumes; /* WARDEN_VOLUMES_MAX of them */
	uint8_t boot_id[UUID_BYTES];
};

typedef void driver_sandbox_fn(struct driver *d, const char *id, warden_reply_fn *reply, void *arg);
typedef void driver_disk_fn(
	struct driver *d, const struct disk_name *disk, keeper_reply_fn *reply, void *arg);
typedef void driver_network_fn(
	struct driver *d, const char *id, network_reply_fn *reply, void *arg);
typedef void driver_copy_fn(struct driver *d, const struct disk_name *disk,
	const struct disk_name *from, keeper_reply_fn *reply, void *arg);

struct driver {
	/* ---- sandboxes ---- */
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
	/* They are those of the database of this identity from now on. */
	void (*disk_own)(struct driver *d, const char *owner, keeper_reply_fn *reply, void *arg);
	/* from: what it begins with; NULL: nothing. */
	void (*disk_make)(struct driver *d, const struct disk_name *disk,
		const struct disk_name *from, int64_t limit, keeper_reply_fn *reply, void *arg);
	void (*disk_limit)(struct driver *d, const struct disk_name *disk, int64_t limit,
		keeper_reply_fn *reply, void *arg);
	driver_copy_fn *disk_keep, *disk_restore;
	driver_disk_fn *disk_delete, *disk_set_aside, *disk_usage, *disk_sample, *disk_measure;
	driver_disk_fn *disk_next; /* without an id: asks for the first of the kind */
	/* from may be NULL. The reply's pipe is the caller's. */
	void (*disk_diff)(struct driver *d, const struct disk_name *disk,
		const struct disk_name *from, const char *root, enum diff_form form,
		keeper_reply_fn *reply, void *arg);

	/* ---- networks ---- */
	void (*network_hello)(struct driver *d, network_reply_fn *reply, void *arg);
	driver_network_fn *network_on, *network_off;
	/* What it may reach; without a policy a network that is on leads nowhere. */
	void (*policy_set)(struct driver *d, const char *id, const struct driver_policy *policy,
		tell_done_fn *done, void *arg);
	/* Its connections end; `done` may be NULL. */
	void (*policy_forget)(struct driver *d, const char *id, tell_done_fn *done, void *arg);
	/* What is added to a sandbox's requests, by this broker: entries of wire/broker.h. */
	void (*broker_set)(struct driver *d, const char *broker, const char *id,
		const struct buf *entries, tell_done_fn *done, void *arg);
	void (*broker_forget)(struct driver *d, const char *broker, const char *id,
		tell_done_fn *done, void *arg);
	/* Both are set of all that live: any other is left over. */
	void (*policies_complete)(struct driver *d);

	/* Whether any call has no answer yet. */
	bool (*is_busy)(const struct driver *d);
	/* The driver is freed before `closed` is called. */
	void (*close)(struct driver *d, void (*closed)(void *arg), void *arg);
};

/* Descriptors of socket pairs, and where bunker-egress listens. */
struct driver_links {
	int warden_fd, keeper_fd, network_fd;
	const char *run_dir;
	/* What bunker-egress says by itself, for the caller of native_driver_open. */
	egress_told_fn *egress_told;
};

/*
 * The one that is there: namespaces and cgroups by the warden, disks by the keeper, networks by
 * bunker-wire and bunker-egress. `lost` is called when the warden is gone.
 */
int native_driver_open(struct driver **ret, uv_loop_t *loop, const struct driver_links *links,
	void (*lost)(void *arg), void *arg, struct error *e);
