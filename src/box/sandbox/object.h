/* A sandbox as the rooms of box see it. */
#pragma once

#include <uthash.h>

#include "base/id.h"
#include "box/link/init_link.h"
#include "box/sandbox/event.h"
#include "box/sandbox/sandbox.h"
#include "box/sandbox/state.h"
#include "box/sandbox/tenant.h"
#include "box/sandbox/traffic.h"
#include "box/sandbox/usage.h"
#include "wire/keeper.h"
#include "wire/warden.h"

struct sandbox_waiter;
struct turn_waiter;
struct file_link;
struct checkpoint;
struct code_context;
struct execution;
struct pause_work;
struct file_watcher;
struct port_call;
struct port_link;

/* The parts of a sandbox. Each is written by the files that are named, and read by others. */

/* turn.c: one operation of the life cycle at a time. */
struct sandbox_turn {
	bool taken;    /* by an operation of the life cycle, or by its creation */
	bool granting; /* the next one is being found */
	struct turn_waiter *waiting;
	unsigned waiting_count;
};

/* connect.c: the connection to its init. */
struct sandbox_init {
	struct init_link *link;
	void (*connected)(void *arg, struct sandbox *s, int error); /* while connecting */
	void *connected_arg;
	int64_t greeted_us; /* monotonic: since when init has named its processes; 0: not yet */
	unsigned records;   /* of processes that it has named */
	unsigned settling;  /* of which this many have exited, and are not stored yet */
	bool unheard;       /* since we started: what runs in it we have not heard */
	bool reconciling;   /* since we started: it has yet to answer, or to be given up */
};

/* pause.c, halt.c */
struct sandbox_pause {
	bool pausing;            /* from the begin of a pause to the end of the resume */
	bool waking;             /* a call has asked for a resume, which has not ended */
	bool frozen;             /* its processes stand */
	struct pause_work *work; /* a pause that waits for init's deadlines to stand */
};

/* lease.c, expiry.c */
struct sandbox_lease {
	int64_t awake_us; /* since when it is not paused, in monotonic time */
	int64_t retry_ms; /* its clock does nothing before */
	bool expiring;    /* its clock has asked for a pause */
};

/* ending.c */
struct sandbox_ending {
	bool doomed; /* a delete waits for the operation whose turn it is */
	enum event_cause cause;
	bool row_ended, killed; /* what is done */
	bool row_refused;       /* the store had no room, and is not being asked */
	bool disk_gone;         /* because of that */
	bool told;              /* also because of that: only the row is still to be ended */
	struct sandbox_waiter *waiters; /* for the end */
};

/* trust.c */
struct sandbox_trust {
	char *own; /* entries of a section: the CA of its own; NULL: it has none */
	bool late; /* its stores do not have it yet, because its processes stand */
};

/* box/process */
struct sandbox_processes {
	struct execution *live;
	unsigned readers; /* streams that are open */
	int64_t oom_seen; /* OOM kills that the kernel had counted at the last look */
};

/* box/files */
struct sandbox_files {
	struct file_link *links; /* to its file workers, busy or not */
	struct file_watcher *watchers;
	unsigned inner; /* of what runs, file calls */
};

/* box/port */
struct sandbox_ports {
	struct port_link *link;  /* NULL: no socket has been asked for */
	struct port_call *calls; /* connections that are being made */
	unsigned count;
	int stock[4]; /* sockets for the next ones */
	unsigned stocked;
	unsigned waiting; /* requests that have a connection and no answer */
	struct port_spare *spares;
	unsigned spare_count;
	uv_timer_t *timer; /* of `spares`; NULL: there are none */
};

/* box/code */
struct sandbox_code {
	struct code_context *contexts; /* by their creation */
};

/* box/disk */
struct sandbox_disk {
	struct checkpoint *checkpoints;
	unsigned checkpoint_count;
	struct warden_volume volumes[WARDEN_VOLUMES_MAX]; /* the first without an id ends */
	struct disk_name fork_of; /* the copy that its disk is made from; DISK_NONE: no fork */
	int64_t copy_frozen_us;   /* how long its source stood still for it */
};

struct sandbox {
	struct box *box;
	/* The settings and state that its row and its views have; the texts are owned. */
	union {
		struct sandbox_record record;
		struct sandbox_record;
	};
	enum sandbox_status intent; /* what its row says */
	bool known;                 /* its row is in the store */
	bool listed;                /* in the box's table */
	bool pooled;                /* it has no owner yet */
	bool hidden;                /* in the list of those for work of our own */
	bool is_porter;             /* its file work is on a volume alone */
	bool networked;             /* egress has its policy */
	bool brokered;              /* a broker has its rules */
	uint32_t found;             /* by the warden, at start */
	int64_t found_oom_kills;    /* likewise */
	unsigned running;           /* executions and file calls that have not ended */
	enum charge charge;
	struct sandbox_turn turn;
	struct sandbox_init init;
	struct sandbox_pause pause;
	struct sandbox_lease lease;
	struct sandbox_ending ending;
	struct sandbox_trust trust;
	struct usage_state usage;
	struct sandbox_traffic traffic;
	struct sandbox_processes processes;
	struct sandbox_files files;
	struct sandbox_ports ports;
	struct sandbox_code code;
	struct sandbox_disk disk;
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
/*
 * Makes the current OOM-kill count the baseline, so that earlier kills are not attributed to a
 * later command.
 */
void sandbox_note_oom(struct sandbox *s);

/* ---- sandbox_list.c: its place in the tables ---- */

void sandbox_add(struct sandbox *s);
void sandbox_remove(struct sandbox *s);
