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
struct later;
struct porter;
struct recorded;
struct sandbox;
struct sandbox_watcher;
struct snapshot;
struct tenant;
struct volume;

struct box {
	uv_loop_t *loop;
	struct store *store;
	struct box_config config;
	const struct sandbox_part *const *parts; /* NULL ends the list */
	const struct box_hooks *hooks;
	struct driver *driver;
	uint32_t layers;
	struct keeper_reply pool_state; /* as the keeper said hello */
	struct sandbox *sandboxes;      /* by id */
	struct sandbox *order;          /* by creation */
	struct sandbox *hidden;         /* for work of our own, in no table */
	unsigned quick_file_calls;      /* under way */
	struct execution *executions;
	struct recorded *recorded;  /* until the first reconciliation is done */
	struct snapshot *snapshots; /* by id */
	struct snapshot *snapshot_order;
	struct volume *volumes;
	struct porter *porters; /* who work on volumes' files */
	unsigned snapshots_pending, comparisons, imports, measurements, portables;
	struct catalogue *catalogue; /* templates and builds */
	struct sandbox *pool;
	unsigned pool_count, pool_booting;
	uv_timer_t clock; /* of all sandboxes */
	int64_t clock_ms; /* for when it is set; 0: it is not */
	struct event_watcher *event_watchers;
	struct tenant *tenants;
	struct sandbox *samplings; /* who is sampled next */
	uv_timer_t sampler;
	struct sandbox_watcher *sandbox_watchers;
	uv_timer_t refill_timer;
	uv_timer_t watchdog;
	uv_timer_t retention_timer;
	uv_timer_t later_timer;
	uv_timer_t code_timer;
	struct later *later;
	struct box_counters counters;
	size_t code_bytes;        /* of code contexts' results, in memory */
	void (*ready)(void *arg); /* until the first reconciliation is done */
	void *ready_arg;
	unsigned reconciling;
	bool listing, listing_disks;
	bool closing, draining;
	void (*closed)(void *arg);
	void *closed_arg;
	unsigned handles_open;
	void (*warden_lost)(void *arg);
	void *warden_lost_arg;
};
