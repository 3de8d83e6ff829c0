/* The state of the server that its rooms share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "box/link/driver.h"
#include "box/sandbox/config.h"
#include "box/sandbox/part.h"
#include "model/usage.h"
#include "store/store.h"

struct box_hooks;
struct catalogue;
struct event_watcher;
struct execution;
struct kept;
struct later;
struct porter;
struct recorded;
struct sandbox;
struct sandbox_watcher;
struct snapshot;
struct spool;
struct start_waiter;
struct tenant;
struct vault;
struct volume;

#define TAG_KEY_SIZE    16
#define BROKER_KEY_SIZE 32

/* The parts of the server's state. Each is written by the room or the files that are named. */

/* box/sandbox */
struct box_sandboxes {
	struct sandbox *by_id;
	struct sandbox *order;  /* by creation */
	struct sandbox *hidden; /* for work of the server's own, in no table */
	struct tenant *tenants;
	int descriptors; /* that all tenants have together */
	struct sandbox_watcher *watchers;
	struct event_watcher *event_watchers;
};

/* lease.c: one timer for the leases of all sandboxes, and the time that they are kept in. */
struct box_clock {
	uv_timer_t timer;
	int64_t due_ms;   /* 0: the timer is not set */
	int64_t began_ms; /* wall time at the start, minus the time since the boot */
	int64_t step_ms;  /* how far the wall clock was set since then */
};

/* usage.c */
struct box_sampler {
	uv_timer_t timer;
	struct sandbox *next[2]; /* to be sampled: of the busy ones, of the idle ones */
};

/* later.c */
struct box_later {
	uv_timer_t timer;
	struct later *first;
};

/* disk_name.c: disks that are set aside. */
struct box_aside {
	unsigned done; /* since the last report */
	unsigned pending;
};

/* box/process */
struct box_processes {
	struct execution *by_id;
	struct recorded *recorded;     /* until their init has answered */
	uint8_t tag_key[TAG_KEY_SIZE]; /* for execution_sign */
	struct spool *spool;
	struct kept *kept; /* what commands take of the disk, by tenant */
	bool sweeping;     /* the spool files */
};

/* box/files */
struct box_files {
	unsigned quick_calls; /* under way */
};

/* box/code */
struct box_code {
	uv_timer_t timer;
	size_t bytes; /* of results that are kept in memory */
};

/* box/disk */
struct box_disks {
	struct snapshot *snapshots; /* by id */
	struct snapshot *snapshot_order;
	struct volume *volumes;
	struct porter *porters;
	unsigned snapshots_pending, comparisons; /* under way */
};

/* core/pool.c: booted sandboxes that have no owner yet. */
struct box_pool {
	struct sandbox *first;
	unsigned count, booting;
	uv_timer_t refill_timer;
};

/* core/reconcile.c */
struct box_start {
	void (*ready)(void *arg); /* requests can be served */
	void (*found)(void *arg); /* every init has answered, or was given up */
	void *arg;
	unsigned reconciling; /* rows whose sandboxes are not found */
	bool listing, listing_disks;
	bool begun;   /* the warden has looked what there is */
	bool settled; /* `found` was called */
	uv_timer_t grace;
	struct start_waiter *waiters;
};

/* core/core.c */
struct box_end {
	bool draining;
	void (*closed)(void *arg);
	void *closed_arg;
	unsigned handles_open;
};

/* Members that belong to box/core. */
struct box_core {
	unsigned bundle_imports, portable_imports, measurements; /* under way */
	uv_timer_t watchdog;
	uv_timer_t retention_timer;
	unsigned expired_executions, expired_sandboxes; /* with the last slice */
	void (*warden_lost)(void *arg);
	void *warden_lost_arg;
};

struct box {
	uv_loop_t *loop;
	struct store *store;
	struct box_config config;
	struct driver *driver;
	const struct sandbox_part *const *parts; /* NULL ends the list */
	const struct box_hooks *hooks;
	struct box_counters counters;
	struct vault *vault;                 /* tenants' secrets */
	uint8_t broker_key[BROKER_KEY_SIZE]; /* of which brokers' ids are made */
	bool has_quota;                      /* the file system of the disks keeps quotas */
	enum network_step network_lack;      /* what this host lacks for any network */
	bool starting;                       /* until requests are served */
	bool closing;                        /* nothing new is begun */
	struct box_sandboxes sandboxes;
	struct box_clock clock;
	struct box_sampler sampler;
	struct box_later later;
	struct box_aside aside;
	struct box_processes processes;
	struct box_files files;
	struct box_code code;
	struct catalogue *catalogue; /* box/template */
	struct box_disks disks;
	struct box_pool pool;
	struct box_start start;
	struct box_end end;
	struct box_core core;
};
