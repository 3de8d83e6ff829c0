/* What the files of this room share, and nobody outside sees. */
#pragma once

#include <uthash.h>
#include <utlist.h>

#include "base/id.h"
#include "box/core/box.h"
#include "box/code/code.h"
#include "box/sandbox/event.h"
#include "box/process/execution_core.h"
#include "box/files/files.h"
#include "box/sandbox/sandbox.h"
#include "box/template/template.h"
#include "box/sandbox/tenant.h"
#include "box/sandbox/usage.h"
#include "store/store.h"
#include "wire/frame.h"
#include "wire/diff.h"
#include "wire/keeper.h"

/* ---- warden_link.c: requests to the warden and their answers ---- */

typedef void warden_reply_fn(void *arg, const struct warden_reply *reply);
struct warden_call;

struct warden_link {
	int fd;
	uv_poll_t poll;
	uint32_t sequence;
	struct warden_call *calls;  /* all that wait for an answer, oldest first */
	struct warden_call *unsent; /* the first that the socket has not taken */
	bool writing;               /* we are told when it takes more */
	void (*lost)(void *arg);
	void *arg;
};

int warden_link_open(
	struct warden_link *w, uv_loop_t *loop, int fd, void (*lost)(void *arg), void *arg);
void warden_link_call(struct warden_link *w, enum warden_op op, const char *id,
	const struct resources *limits, warden_reply_fn *reply, void *arg);
void warden_link_boot(struct warden_link *w, const struct sandbox *s,
	const uint8_t boot_id[UUID_BYTES], warden_reply_fn *reply, void *arg);
/* Calls that are not answered are dropped. */
void warden_link_close(struct warden_link *w, uv_close_cb closed);

/* ---- keeper_link.c: requests to the keeper of the disks and their answers ---- */

typedef void keeper_reply_fn(void *arg, const struct keeper_reply *reply);
struct keeper_call;

struct keeper_link {
	int fd;
	uv_poll_t poll;
	uint32_t sequence, epoch;
	struct keeper_call *calls;  /* all that wait for an answer */
	struct keeper_call *unsent; /* the first that the socket has not taken */
	bool writing;               /* we are told when it takes more */
	void *arg;
};

int keeper_link_open(struct keeper_link *k, uv_loop_t *loop, int fd, void *arg);
/* disk and from may be NULL. */
void keeper_link_call(struct keeper_link *k, enum keeper_op op, const struct disk_name *disk,
	const struct disk_name *from, int64_t bytes, keeper_reply_fn *reply, void *arg);
/* The reply's pipe is the caller's. */
void keeper_link_diff(struct keeper_link *k, const struct disk_name *disk,
	const struct disk_name *from, const char *root, enum diff_form form, keeper_reply_fn *reply,
	void *arg);
void keeper_link_close(struct keeper_link *k, uv_close_cb closed);

/* ---- init_link.c: the connection to one sandbox's init ---- */

struct init_link;

struct init_events {
	void (*frame)(void *arg, const struct frame_header *h, const char *payload);
	void (*ready)(void *arg); /* every RECORD has been given to frame */
	void (*lost)(void *arg);  /* not after init_link_close */
};

/* Without a connection yet: what is to be sent waits for one. */
struct init_link *init_link_new(uv_loop_t *loop, const struct init_events *events, void *arg);
int init_link_connect(struct init_link *l, const char *path);
/* What is appended to the returned buffer is sent when the call that follows runs. */
struct buf *init_link_buffer(struct init_link *l);
void init_link_flush(struct init_link *l);
/* While it is held nothing is sent: the other side stands in the freezer. */
void init_link_hold(struct init_link *l, bool hold);
bool init_link_is_connected(const struct init_link *l);
/* Whom the events are for from now on. */
void init_link_set_arg(struct init_link *l, void *arg);
void init_link_close(struct init_link *l);

/* ---- sandbox.c: the object ---- */

/* What a fork is made of: the sandbox, and a copy of its disk. */
struct fork_origin {
	const struct sandbox *source;
	struct disk_name disk;
};

/* What is charged to its tenant. */
enum charge {
	CHARGE_NONE,
	CHARGE_DISK, /* and that it is there */
	CHARGE_ALL
};

struct usage_state {
	int64_t cpu_before_us;      /* of the boots that have ended */
	int64_t cpu_us;             /* of this one, as it was seen last */
	int64_t memory, pids, disk; /* as they were seen last */
	double memory_byte_seconds;
	int64_t sampled_us, due_us; /* monotonic; 0: nothing runs */
	unsigned samples;
	bool sampling; /* in the list */
	struct usage_sample *history;
	size_t history_len, history_cap, history_next;
};

struct sandbox_waiter;
struct claim;
struct file_link;
struct move;

struct sandbox {
	struct box *box;
	/* What its row says and everybody may read; its texts are owned. */
	union {
		struct sandbox_record record;
		struct sandbox_record;
	};
	bool host_network;        /* of a builder */
	int64_t copy_frozen_us;   /* how long its source stood still for it */
	struct disk_name fork_of; /* the copy that its disk is made from; DISK_NONE: no fork */
	struct warden_volume volumes[WARDEN_VOLUMES_MAX]; /* the first without an id ends */
	struct checkpoint *checkpoints;
	unsigned checkpoint_count;
	enum sandbox_status intent; /* what its row says */
	enum event_cause end_cause;
	int64_t awake_ms;       /* since when it is not paused */
	int64_t retry_ms;       /* its clock does nothing before */
	bool pooled;            /* nobody has it yet */
	bool is_porter;         /* its file work is on a volume alone */
	bool listed;            /* in the box's table */
	bool claimed;           /* by an operation of the life cycle, or by its creation */
	bool granting;          /* the next one is being found */
	bool pausing;           /* from the begin of a pause to the end of the resume */
	bool waking;            /* a call has asked for a resume, which has not ended */
	bool frozen;            /* its processes stand */
	bool doomed;            /* a delete waits for the operation that has claimed it */
	bool row_ended, killed; /* of a delete, what is done */
	bool row_refused;       /* the store had no room, and is not being asked */
	bool disk_gone;         /* because of that */
	bool known;             /* its row is in the store */
	bool unheard;   /* it was paused when we started: what runs in it we have not heard */
	bool expiring;  /* its clock has asked for a pause */
	uint32_t found; /* by the warden, at start */
	int64_t oom_seen;
	struct init_link *link;
	void (*connected)(void *arg, struct sandbox *s, int error); /* while connecting */
	void *connected_arg;
	int64_t greeted_us; /* monotonic: since when init has named its processes; 0: not yet */
	unsigned settling;  /* of which this many have exited, and are not stored yet */
	unsigned running;   /* executions and file calls that have not ended */
	unsigned inner;     /* of which file calls */
	unsigned readers;   /* streams of its executions that are open */
	struct execution *live;
	struct file_link *file_links; /* to its file workers, busy or not */
	struct watcher *watchers;
	struct claim *claims; /* operations that wait for their turn */
	unsigned claim_count;
	struct sandbox_waiter *waiters; /* for the end */
	struct code_context *contexts;  /* of code, by their creation */
	struct move *move;              /* a pause that waits for init's deadlines to stand */
	enum charge charge;
	struct usage_state usage;
	struct sandbox *sampling_prev, *sampling_next;
	struct sandbox *prev, *next;
	UT_hash_handle by_id;
};

struct sandbox *sandbox_new(struct box *b, const char *id);
/* As the keeper names it; and what it was when it was new. */
struct disk_name disk_of(const struct sandbox *s);
struct disk_name disk_to_begin_with(const struct sandbox *s);
char *sandbox_copy_string(const char *text); /* "" for NULL */
/* Replaces a text that is owned by a copy. */
void sandbox_set_text(const char **at, const char *text);
void sandbox_free(struct sandbox *s);
void sandbox_fail(struct sandbox *s, const char *reason);
void sandbox_execution_began(struct sandbox *s);
void sandbox_execution_ended(struct sandbox *s);
/* What the kernel has counted so far is nobody's fault from now on. */
void sandbox_note_oom(struct sandbox *s);

/* ---- sandbox_list.c: its place in the tables ---- */

void sandbox_add(struct sandbox *s);
void sandbox_remove(struct sandbox *s);

/* ---- sandbox_row.c ---- */

struct sandbox *sandbox_from_row(struct box *b, const struct sandbox_record *row);
/* Its row, as it is, but for the status that it is meant to have. */
void sandbox_store(struct sandbox *s, enum sandbox_status status, store_done_fn *done, void *arg);

/* ---- connect.c: the connection to its init ---- */

typedef void sandbox_connected_fn(void *arg, struct sandbox *s, int error);
/* To its init, that is or will be. */
struct init_link *sandbox_link_new(struct sandbox *s);
/* To its init; the callback comes when init has named every process it has, and ends that it knows
 * of are stored. */
void sandbox_connect(struct sandbox *s, sandbox_connected_fn *connected, void *arg);
/* While connecting: it came to nothing. */
void sandbox_not_connected(struct sandbox *s, int error);
/* One of those ends is stored, or was refused. */
void sandbox_settled(struct sandbox *s);
/* Those that wait for too long are connected without. */
void sandbox_check_settling(struct box *b);

/* ---- status.c: the table of allowed moves ---- */

void sandbox_set_status(struct sandbox *s, enum sandbox_status status);
/* Idle or running, by what goes on in it. */
void sandbox_set_awake(struct sandbox *s);
bool sandbox_is_awake(const struct sandbox *s);

/* ---- claim.c: one operation of the life cycle at a time ---- */

/* e: it is being deleted, and nothing may be done or released. */
typedef void sandbox_claimed_fn(void *arg, struct sandbox *s, const struct error *e);
/* Calls back when it is one's turn, perhaps at once. */
void sandbox_claim(struct sandbox *s, sandbox_claimed_fn *claimed, void *arg);
/* The next one's turn; or its end, when it was deleted meanwhile. */
void sandbox_release(struct sandbox *s);
/* Those that wait are told that it is being deleted. */
void sandbox_refuse_claims(struct sandbox *s);

/* ---- halt.c: the steps between which a claimed sandbox's disk may be worked on ---- */

/* Every process stops where it is. Nothing is lost: what is to be sent waits for the thaw. */
void sandbox_freeze(struct sandbox *s, sandbox_done_fn *done, void *arg);
void sandbox_thaw(struct sandbox *s, sandbox_done_fn *done, void *arg);
/* Its executions have ended, and what is sent from now on is for the next boot. */
void sandbox_disconnect(struct sandbox *s);
/* Ends every process and init; the disk, the object and the row stay. Always works, some time.
 * After sandbox_disconnect. */
void sandbox_halt(struct sandbox *s, sandbox_done_fn *done, void *arg);
/* Boots it: with a new disk or, again, on the one it has. On failure no process is left. */
void sandbox_boot(struct sandbox *s, bool again, sandbox_done_fn *done, void *arg);

/* ---- pause.c ---- */

void sandbox_pause_because(struct sandbox *s, bool keep_memory, enum event_cause cause,
	sandbox_done_fn *done, void *arg);

/*
 * For whoever is about to send something to its init: 0 when it is awake, or is being woken for
 * this call, which then waits in the connection's buffer. Refused when it is paused and was not
 * asked to wake by itself, or cannot wake any more.
 */
int sandbox_wake(struct sandbox *s, struct error *e);
/* FRAME_PAUSED has come. */
void sandbox_init_is_still(struct sandbox *s);

/* ---- ending.c ---- */

void sandbox_terminate(struct sandbox *s, enum event_cause cause);

/* When nobody has claimed it any more. */
void sandbox_end_now(struct sandbox *s);
/* What the store refused. */
void sandbox_retry_ends(struct box *b);

/* ---- lease.c ---- */

/* What its time depends on has changed. */
void sandbox_clock_changed(struct sandbox *s);
/* When its time is up, and when that ends it, as things are; 0: never. */
int64_t sandbox_expires_ms(const struct sandbox *s);
int64_t sandbox_terminates_ms(const struct sandbox *s);
/* It begins anew, now. */
void sandbox_renew_lease(struct sandbox *s);

/* ---- admission.c ---- */

/* The tenant's sandbox of this name. */
struct sandbox *admission_named(struct box *b, const char *tenant, const char *name);
/* Of which template: the id of a build, or as it was asked for; NULL: the default. */
const char *admission_template(struct box *b, const struct sandbox_spec *spec);
/* Whether none of it is above what this server gives. */
int admission_check_maxima(const struct box *b, const struct resources *r, struct error *e);
/* Whether such a sandbox may be made; fills in the defaults of *r. */
int admission_check(
	struct box *b, const struct sandbox_spec *spec, struct resources *r, struct error *e);

/* ---- files.c ---- */

/* It is awake again: calls that have waited for it go on. */
void files_awake(struct sandbox *s);
/* It does not wake: those that have waited are told why. */
void files_refuse_waiting(struct sandbox *s, const struct error *e);
/* The sandbox ends, or we do: its calls end with e. */
void files_end_all(struct sandbox *s, const struct error *e);

/* ---- tenant.c ---- */

struct tenant;

/* Charges it with this instead of what it is charged with; refused above the quota. */
int tenant_charge(struct sandbox *s, enum charge charge, struct error *e);
/* For what is there already, and for less than before. */
void tenant_force_charge(struct sandbox *s, enum charge charge);
/* Whose comparison it is, until it ends; NULL: the tenant has as many as it may. */
struct tenant *tenant_begin_comparison(struct box *b, const char *name, struct error *e);
void tenant_end_comparison(struct tenant *t);
void tenants_free(struct box *b);

/* ---- usage.c ---- */

/* From now on it is sampled, until usage_end. */
void usage_begin(struct sandbox *s);
void usage_end(struct sandbox *s);
void usage_boot_began(struct usage_state *u);
/* Its processes are dead; the memory is what they had before. */
void usage_boot_ends(struct usage_state *u, int64_t memory);
/* With what the kernel said last, if it did. */
void usage_boot_ended(struct usage_state *u, int64_t cpu_us);

/* ---- watcher.c ---- */

void watcher_remove_all(struct sandbox *s);

/* ---- pool.c: booted sandboxes that nobody has yet ---- */

struct sandbox *pool_take(struct box *b);
void pool_refill(struct box *b);
/* When somebody has just come. */
void pool_refill_later(struct box *b);
/* One that died before anybody had it. */
void pool_discard(struct sandbox *s);
void pool_drain(struct box *b);

/* ---- hidden.c: sandboxes for work of our own ---- */

/* Of the tenant's but not charged to it, with the default limits and the largest disk. */
struct sandbox *hidden_new(struct box *b, const char *tenant);
/* Ends what goes on in it, and frees it; then `gone` is called. */
void hidden_dismiss(struct sandbox *s, void (*gone)(void *arg), void *arg);

/* ---- code_context.c, code_kernel.c: contexts of code ---- */

/* From the store, at start. */
int code_load(struct box *b);
/* Their kernels are not touched. */
void code_forget_all(struct sandbox *s);
/* One that init still has from an earlier front. */
void code_kernel_adopt(struct execution *x);

/* ---- reconcile.c ---- */

int reconcile_load(struct box *b);
void reconcile_start(struct box *b);

/* ---- core.c ---- */

struct catalogue;
struct later;
struct tenant;

struct box {
	uv_loop_t *loop;
	struct store *store;
	struct box_config config;
	struct warden_link warden;
	struct keeper_link keeper;
	uint32_t layers;
	struct keeper_reply pool_state; /* as the keeper said hello */
	struct sandbox *sandboxes;      /* by id */
	struct sandbox *order;          /* by creation */
	unsigned quick_file_calls;      /* under way */
	struct execution *executions;
	struct recorded *recorded;  /* until the first reconciliation is done */
	struct snapshot *snapshots; /* by id */
	struct snapshot *snapshot_order;
	struct volume *volumes;
	struct porter *porters; /* who work on volumes' files */
	unsigned snapshots_pending, comparisons, imports, inventories, portables;
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

/* Calls back with e, or NULL when it is NULL, after the caller has returned. */
void box_answer_later(struct box *b, sandbox_done_fn *done, void *arg, const struct error *e);
/* Something that a close may be waiting for has happened. */
void box_check_closed(struct box *b);
