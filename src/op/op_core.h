/* An operation as the files of this room see it. */
#pragma once

#include "base/id.h"
#include "box/process/execution.h"
#include "box/files/files.h"
#include "box/sandbox/sandbox.h"
#include "op/op.h"

enum op_end {
	OP_ENDED,    /* it was told to its last event */
	OP_LEFT,     /* its caller has gone; it goes on, if it can without one */
	OP_CANCELLED /* it is to end */
};

struct op_type {
	const char *name;
	bool changes;
	bool outlives_caller;
	/* The caller wants events. Not called once it has failed. NULL if there is `ask`. */
	void (*resume)(struct op *op);
	/*
	 * Ends or lets go of what is under way, and frees what the type has; `op` itself is ours.
	 * NULL: there is nothing to let go of.
	 */
	void (*release)(struct op *op, enum op_end end);
	/* May end the operation. */
	void (*put)(struct op *op, const struct op_item *item);
	size_t (*room)(const struct op *op);
	/*
	 * Carries out an operation of one step (op_ask): called once, it ends the operation or
	 * awaits a callback. All that it tells comes at once, so its caller must not pause.
	 */
	void (*ask)(struct op *op);
	/* Called instead of the first `resume` if op_call.takes_ended and the sandbox has ended.
	 * NULL: it makes no difference. */
	void (*past)(struct op *op, const struct sandbox_view *view);
	/*
	 * The operation does not depend on what runs in the sandbox, so after a restart it is not
	 * held until init has answered. Required of types that begin before the first `resume`.
	 */
	bool early;
	/*
	 * The operation does not begin if its caller leaves while it waits for its turn of the
	 * sandbox. Set for results that only the caller would know of; a pause is carried through.
	 */
	bool withdraws;
};

/* The frame of an operation, and the first member of each type's own struct. */
struct op {
	const struct op_type *type;
	struct ops *ops;
	op_event_fn *event;
	void *arg;
	bool paused; /* the caller cannot take more; from the beginning on */
	bool failed;
	bool over;   /* no event is told any more, even if `release` causes one */
	bool awaits; /* a callback is due that cannot be taken back */
	bool gone;   /* ... and is all that keeps this alive */
	bool asked;  /* its type's `ask` was called */
	enum op_reason reason;
	struct error failure;
	struct scratch memory;
	uv_timer_t *deadline;
	char *sandbox, *volume, *tenant; /* copies: the call is the caller's */
	struct op_summary summary;
};

/*
 * A zeroed `size` with the operation in front, checked and announced. If it is not admitted, or
 * there is no such sandbox or volume, op->failed is set and *s is NULL.
 */
struct op *op_new(
	const struct op_call *call, const struct op_type *type, size_t size, struct sandbox **s);
/*
 * Begins an operation whose type has `ask`, with a copy of the request: `ask` finds it by
 * op_asked. What the request points at is borrowed as always.
 */
struct op *op_ask(
	const struct op_call *call, const struct op_type *type, const void *request, size_t size);
const void *op_asked(const struct op *op);
/* The sandbox now; NULL and *e when it is gone meanwhile. For operations of several steps. */
struct sandbox *op_sandbox(const struct op *op, struct error *e);
/* The operation is about a sandbox that is gone meanwhile, or going: *e says so. */
bool op_has_lost_sandbox(const struct op *op, struct error *e);
struct volume;
/* Finds the operation's volume now; NULL and *e when it is gone meanwhile. */
struct volume *op_volume(const struct op *op, struct error *e);
/*
 * Returns the directory that relative paths begin at when root works for a user: the user's home,
 * or the sandbox's working directory if `user` is NULL. To be freed.
 */
char *op_root_cwd(const struct sandbox *s, const char *user);
/* Makes a directory for the sandbox's user, with its parents; an existing one is accepted. */
int op_make_home(struct sandbox *s, const char *home, const struct file_events *events, void *arg,
	struct file_call **ret, struct error *e);
/* A callback is due that cannot be taken back. */
void op_await(struct op *op);
/* Ends op_await. Returns false if the caller has left: then op is gone. */
bool op_awaited(struct op *op);
/* Marks that memory of the request is not needed any more. */
void op_has_begun(struct op *op);
/* False: the operation is gone, and so is op. Look at op->paused before the next one. */
bool op_emit(struct op *op, const struct op_event *event);
/* For callbacks that tell nothing but how it went: OP_DONE, or OP_FAILED if e is not NULL. */
void op_called_back(void *op, const struct error *e);
/* Tells the last event and frees op. */
void op_done(struct op *op, const struct op_event *event);
/* Tells OP_FAILED, now or as soon as the caller listens, and frees op. */
void op_fail(struct op *op, enum op_reason reason, const struct error *e);

/* A timer that calls back once, with the operation as its data. */
uv_timer_t *op_timer_start(struct op *op, int64_t ms, uv_timer_cb passed);
/* Stops and frees a timer and sets it to NULL. Does nothing for NULL. */
void op_timer_stop(uv_timer_t **timer);

/* ---- attended.c ---- */

/* Cancels it when no other watcher was there for a second. */
void op_guard(struct ops *ops, struct execution *x);

/* ---- find.c: which execution ---- */

/* A search: a member of the operation that searches, which it must not outlive. */
struct op_search {
	struct op *op;
	struct execution_ref ref; /* what it points at: until `found` */
	bool among_ended;         /* by pid or name: also a background process that has ended */
	/* Called once, now or later, unless the operation is left. NULL: there is none. */
	void (*found)(struct op *op, struct execution *x);
	char past[ID_SIZE]; /* "": none yet */
	/*
	 * How many ended executions were looked at, in all and in this slice, and the last of them:
	 */
	unsigned seen, slice;
	int64_t before_ms;
	char before_id[ID_SIZE];
};

/* Searches in memory, then in the store; in op's sandbox, if it has one, which may be gone. */
void op_search(struct op_search *search);
/* Fails with "there is no such execution". */
void op_fail_missing(struct op *op);
/*
 * The environment with a variable in front that names the sandbox's template: those behind it win.
 * It lives as long as op->memory. A variable of NULL changes nothing.
 */
const char *const *op_add_template(
	struct op *op, const struct sandbox *s, const char *variable, const char *const *env);
