/* A command as its operations see it: exec.c begins it, attach.c joins it later. */
#pragma once

#include "op/exec.h"
#include "op/op_core.h"

/* How far the caller had been told at a time; 0: nothing was told yet. */
struct exec_mark {
	uint64_t time_ms; /* of the loop */
	uint64_t position[EXECUTION_STREAMS];
};

#define EXEC_MARKS 12

struct exec_op {
	struct op op;
	struct op_exec request; /* what it points at: until it has begun */
	struct op_attach attach;
	struct op_search search;
	bool joined;       /* begun by op_attach */
	bool sought, past; /* past: it had ended before it was found */
	uv_timer_t *wait;  /* of a result */
	struct buf input;  /* for stdin: waits for room */
	bool input_ends;   /* behind it */
	size_t step;
	struct file_call *file; /* of the step under way, if it can be cancelled */
	struct execution *execution;
	struct execution_watcher watcher;
	bool woke, announced, exited;
	uint64_t until[EXECUTION_STREAMS]; /* of an attachment that stops here */
	/* The positions of a stream, oldest first, MARK_MS apart. */
	struct exec_mark marks[EXEC_MARKS];
	unsigned mark_count;
	uint64_t last_told_ms;
	uint64_t began[EXECUTION_STREAMS]; /* where the stream did */
	/* of a result: */
	struct output_copy copies[EXECUTION_STREAMS];
	unsigned current;
	uint64_t position;
};

/* Makes an operation of `type`; output is told in pieces of `piece` bytes, 0: the default. */
struct exec_op *exec_new(const struct op_call *call, const struct op_type *type, size_t piece);
/* The `release` of both types. */
void exec_release(struct op *op, enum op_end end);

/* ---- exec_tell.c ---- */

/* Tells the caller what is new, as far as it takes it. The operation may be gone after that. */
void exec_tell(struct exec_op *x);
/* Returns the position that the caller has certainly received; the watcher's `arrived`. */
void exec_tell_arrived(void *arg, uint64_t position[EXECUTION_STREAMS]);
/* Counts output as not seen that a caller who left was most likely still being sent. */
void exec_tell_unsee(struct exec_op *x);
/* Stops to watch the execution. */
void exec_tell_stop(struct exec_op *x);

/* ---- exec_input.c ---- */

/* The `put` and `room` of both types. */
void exec_input_put(struct op *op, const struct op_item *item);
size_t exec_input_room(const struct op *op);
/* Called when stdin can take more. */
void exec_input_proceed(struct exec_op *x);
