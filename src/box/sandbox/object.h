/* A sandbox as the rooms of box see it. */
#pragma once

#include <uthash.h>

#include "base/id.h"
#include "box/link/init_link.h"
#include "box/sandbox/event.h"
#include "box/sandbox/sandbox.h"
#include "box/sandbox/state.h"
#include "box/sandbox/tenant.h"
#include "box/sandbox/usage.h"
#include "wire/keeper.h"
#include "wire/warden.h"

struct sandbox_waiter;
struct claim;
struct file_link;
struct checkpoint;
struct code_context;
struct execution;
struct move;
struct watcher;

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
	bool hidden;            /* in the list of those for work of our own */
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
char *sandbox_copy_string(const char *text); /* "" for NULL */
/* Replaces a text that is owned by a copy. */
void sandbox_set_text(const char **at, const char *text);
void sandbox_free(struct sandbox *s);
void sandbox_execution_began(struct sandbox *s);
void sandbox_execution_ended(struct sandbox *s);
/* What the kernel has counted so far is nobody's fault from now on. */
void sandbox_note_oom(struct sandbox *s);

/* ---- sandbox_list.c: its place in the tables ---- */

void sandbox_add(struct sandbox *s);
void sandbox_remove(struct sandbox *s);
/* The tenant's sandbox of this name. */
struct sandbox *sandbox_find_named(struct box *b, const char *tenant, const char *name);
