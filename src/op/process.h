/* Processes: looked at, waited for, told something, listed. */
#pragma once

#include "op/op.h"

enum op_process_act {
	OP_PROCESS_LOOK,
	OP_PROCESS_SIGNAL,
	OP_PROCESS_STOP, /* SIGTERM for all of it, after grace_ms SIGKILL */
	OP_PROCESS_KILL, /* it and everything it started */
	OP_PROCESS_RESIZE,
	OP_PROCESS_END_INPUT
};

#define OP_WAIT_FOREVER (-1)

struct op_process {
	struct execution_ref process;
	enum op_process_act act; /* does nothing to a process that has ended */
	int signal;
	bool tree; /* the signal goes to everything that it started, too */
	int64_t grace_ms;
	unsigned rows, columns;
	bool only_running; /* refuse a process that has ended, with ERROR_NOT_RUNNING */
	int64_t wait_ms;   /* for its end, at most */
	bool usage;        /* is asked for, if it still runs then */
};
/* OP_EXECUTION once: as it is when the wait is over. */
struct op *op_process(const struct op_call *call, const struct op_process *request);

/* A list of the processes of a sandbox, or with `ended` alone of all sandboxes. */
struct op_process_list {
	bool running;      /* first those that run, if the list begins with the newest */
	bool ended;        /* then those that have ended, the newest first, at most `limit` */
	unsigned kinds;    /* bits of 1 << enum execution_kind; 0: all */
	const char *name;  /* of those that run; NULL: any */
	int64_t before_ms; /* started before this moment and id; 0: from the newest */
	const char *before_id;
	unsigned limit;
};
/* OP_EXECUTION for each, without pause; OP_DONE with `more`. */
struct op *op_process_list(const struct op_call *call, const struct op_process_list *request);

/*
 * Stdin of a process that was started with it open: OP_ITEM_DATA, then OP_ITEM_END. While the
 * process does not read there is no room.
 */
struct op_input {
	struct execution_ref process;
	bool named_later; /* instead: by OP_ITEM_PROCESS; data that comes before that waits */
	/*
	 * The offset of the data in stdin: bytes that the process has got already are skipped, so
	 * that a request can be repeated.
	 */
	bool at_offset;
	uint64_t offset;
	bool closes;         /* the end of the input is the end of stdin */
	bool closes_if_left; /* and so is a caller that leaves */
	bool while_read;     /* fails as soon as stdin has no reader any more, also without data */
	bool until_taken;    /* lasts until the process has taken all of it */
};
/* OP_EXECUTION when everything is written. ERROR_STDIN_CLOSED: the process does not read it. */
struct op *op_input(const struct op_call *call, const struct op_input *request);
