/*
 * Snapshots: disks that new sandboxes begin with. They belong to a tenant and outlive the sandbox
 * they were made of. A name can have many snapshots, a tag of that name only one: a new one takes
 * the tag over. A name alone means its tag "latest", or the newest.
 *
 * What is deleted while others were made of it stays as a link in their lineage.
 */
#pragma once

#include "box/sandbox/sandbox.h"
#include "model/snapshot.h"

struct snapshot;

/* s is NULL and e says why when it failed. */
typedef void snapshot_created_fn(
	void *arg, struct snapshot *s, int64_t frozen_us, const struct error *e);
int snapshot_create(struct sandbox *sandbox, const struct snapshot_spec *spec,
	snapshot_created_fn *created, void *arg, struct error *e);
/* By id, "name", "name:tag", or a tag that only one has; NULL also for those of others. */
struct snapshot *snapshot_find(struct box *b, const char *tenant, const char *ref);
/* Finds a snapshot of any tenant, deleted ones included. Returns NULL if the id was never used. */
struct snapshot *snapshot_find_any(struct box *b, const char *id);
/* In the order of creation, those of one tenant: the first, or the first behind a place. */
struct snapshot *snapshot_first(
	struct box *b, const char *tenant, int64_t after_ms, const char *after_id);
struct snapshot *snapshot_next(const struct snapshot *s);
/* Returns the snapshot that this one was made from, deleted ones included; NULL at the root. */
struct snapshot *snapshot_parent(const struct snapshot *s);
void snapshot_view(const struct snapshot *s, struct snapshot_record *out);

/* NULL: none. */
int snapshot_retag(
	struct snapshot *s, const char *tag, sandbox_done_fn *done, void *arg, struct error *e);
/* Refused with in_use while a sandbox stands on it. */
int snapshot_delete(struct snapshot *s, sandbox_done_fn *done, void *arg, struct error *e);

/* ---- fork ---- */

struct fork_result {
	struct sandbox **sandboxes; /* for the time of the call */
	size_t count;
	int64_t frozen_us;
};

/* Told when all forks are made, or none: then result is NULL and e says why. */
typedef void sandbox_forked_fn(void *arg, const struct fork_result *result, const struct error *e);
struct fork;
/*
 * New sandboxes with a copy of its disk as it is now, and its settings but for the name. *ret is
 * there until `forked` is called, which may be at once.
 */
int sandbox_fork(struct sandbox *s, unsigned count, sandbox_forked_fn *forked, void *arg,
	struct fork **ret, struct error *e);
/*
 * Withdraws a fork: copies that have not begun do not begin, and those that were made are
 * destroyed. `forked` is told a failure, perhaps at once.
 */
void sandbox_fork_withdraw(struct fork *f);
