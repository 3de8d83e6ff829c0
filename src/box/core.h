/* What the files of this room share, and nobody outside sees. */
#pragma once

#include <uthash.h>
#include <utlist.h>

#include "base/id.h"
#include "box/box.h"
#include "box/execution_core.h"
#include "box/files.h"
#include "box/sandbox.h"
#include "box/template.h"
#include "store/store.h"
#include "wire/frame.h"

/* ---- warden_link.c: requests to the warden and their answers ---- */

typedef void warden_reply_fn(void *arg, const struct warden_reply *reply);
struct warden_call;

struct warden_link {
	int fd;
	uv_poll_t poll;
	uint32_t sequence;
	struct warden_call *calls;  /* all that wait for an answer, oldest first */
	struct warden_call *unsent; /* the first that the socket has not taken */
	void (*lost)(void *arg);
	void *arg;
};

int warden_link_open(
	struct warden_link *w, uv_loop_t *loop, int fd, void (*lost)(void *arg), void *arg);
void warden_link_call(struct warden_link *w, enum warden_op op, const char *id,
	const struct resources *limits, warden_reply_fn *reply, void *arg);
/* Calls that are not answered are dropped. */
void warden_link_close(struct warden_link *w, uv_close_cb closed);

/* ---- init_link.c: the connection to one sandbox's init ---- */

struct init_link;

struct init_events {
	void (*frame)(void *arg, const struct frame_header *h, const char *payload);
	void (*ready)(void *arg); /* every RECORD has been given to frame */
	void (*lost)(void *arg);  /* not after init_link_close */
};

int init_link_open(struct init_link **ret, uv_loop_t *loop, const char *path,
	const struct init_events *events, void *arg);
/* What is appended to the returned buffer is sent when the call that follows runs. */
struct buf *init_link_buffer(struct init_link *l);
void init_link_flush(struct init_link *l);
/* Whom the events are for from now on. */
void init_link_set_arg(struct init_link *l, void *arg);
void init_link_close(struct init_link *l);

/* ---- sandbox.c ---- */

struct sandbox_waiter;

struct sandbox {
	struct box *box;
	char id[ID_SIZE];
	char *tenant, *name, *description, *template_name, *user, *workdir, *project, *metadata;
	struct buf env;
	enum sandbox_status status;
	char failure[160];
	struct resources resources;
	int64_t idle_ms, execution_ms;
	int64_t created_ms, last_active_ms, startup_us;
	uint64_t executions;
	bool ephemeral;
	bool pooled;                /* nobody has it yet */
	bool listed;                /* in the box's table */
	bool being_created, doomed; /* a delete waits for the creation to end */
	bool row_gone, killed;      /* of a delete, what is done */
	int64_t oom_seen;
	struct init_link *link;
	void (*connected)(void *arg, struct sandbox *s, int error); /* while connecting */
	void *connected_arg;
	unsigned running; /* executions that have not ended, ours included */
	unsigned inner;   /* of which ours: file work */
	unsigned readers; /* streams of its executions that are open */
	struct execution *live;
	struct sandbox_waiter *waiters; /* for the end */
	struct sandbox *prev, *next;
	UT_hash_handle by_id;
};

struct sandbox *sandbox_new(struct box *b, const char *id);
struct sandbox *sandbox_from_row(struct box *b, const struct sandbox_row *row);
void sandbox_free(struct sandbox *s);
void sandbox_add(struct sandbox *s);
typedef void sandbox_connected_fn(void *arg, struct sandbox *s, int error);
/* To its init; the callback comes when init has named every process it has. */
void sandbox_connect(struct sandbox *s, sandbox_connected_fn *connected, void *arg);
void sandbox_fail(struct sandbox *s, const char *reason);
void sandbox_set_status(struct sandbox *s, enum sandbox_status status);
void sandbox_execution_began(struct sandbox *s);
void sandbox_execution_ended(struct sandbox *s);
void sandbox_check_idle(struct box *b);
/* What the kernel has counted so far is nobody's fault from now on. */
void sandbox_note_oom(struct sandbox *s);

/* ---- pool.c: booted sandboxes that nobody has yet ---- */

/* Boot one; booted gets NULL and the reason when it fails. */
void pool_boot(struct box *b, const char *id, const struct resources *r,
	void (*booted)(void *arg, struct sandbox *s, const struct error *e), void *arg);
struct sandbox *pool_take(struct box *b);
void pool_refill(struct box *b);
/* One that died before anybody had it. */
void pool_discard(struct sandbox *s);
void pool_drain(struct box *b);

/* ---- core.c ---- */

struct catalogue;

struct box {
	uv_loop_t *loop;
	struct store *store;
	struct box_config config;
	struct warden_link warden;
	uint32_t layers;
	struct sandbox *sandboxes; /* by id */
	struct sandbox *order;     /* by creation */
	struct execution *executions;
	struct catalogue *catalogue; /* templates and builds */
	struct sandbox *pool;
	unsigned pool_count, pool_booting;
	uv_timer_t idle_timer;
	uv_timer_t refill_timer;
	uv_timer_t watchdog;
	uv_timer_t retention_timer;
	struct box_counters counters;
	void (*ready)(void *arg); /* until the first reconciliation is done */
	void *ready_arg;
	unsigned reconnecting;
	bool listing;
	bool closing, draining;
	void (*closed)(void *arg);
	void *closed_arg;
	unsigned handles_open;
	void (*warden_lost)(void *arg);
	void *warden_lost_arg;
};

/* Something that a close may be waiting for has happened. */
void box_check_closed(struct box *b);
