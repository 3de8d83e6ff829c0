/* A command as data: its spec, its view, and queries for lists. Texts are borrowed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/field.h"

enum execution_status {
	EXECUTION_QUEUED,
	EXECUTION_RUNNING,
	EXECUTION_COMPLETED, /* it exited, with whatever status */
	EXECUTION_FAILED,    /* a signal ended it, it could not start, or its sandbox was lost */
	EXECUTION_TIMEOUT,
	EXECUTION_CANCELLED,
	EXECUTION_STATUS_COUNT
};

const char *execution_status_name(enum execution_status status);
/* Returns EXECUTION_FAILED if no status has the name. */
enum execution_status execution_status_of(const char *name);

/* The kind that it was started as. */
enum execution_kind {
	EXECUTION_COMMAND, /* by a request that waits for it */
	EXECUTION_PROCESS, /* in the background */
	EXECUTION_JOB,
	EXECUTION_KIND_COUNT
};

const char *execution_kind_name(enum execution_kind kind);

struct execution_spec {
	const char *const *argv; /* NULL-terminated, at least one */
	const char *const
		*env;      /* NAME=VALUE, NULL-terminated; may be NULL. Wins over the sandbox's */
	const char *cwd;   /* NULL: the sandbox's; not absolute: below the user's home */
	const char *user;  /* NULL: the sandbox's */
	const char *name;  /* what the caller calls it; NULL: nothing */
	const char *input; /* all of stdin; NULL: none */
	size_t input_len;
	bool open_stdin; /* more input follows */
	bool terminal;   /* stdin, stdout and stderr are one; stdin is open */
	uint16_t rows, columns;
	enum execution_kind kind;
	bool attended;      /* it is cancelled when no client has attended it for a second */
	int64_t timeout_ms; /* 0: the sandbox's */
	bool unlisted; /* started by the server itself, but no file work: not counted, not stored */
};

#define EXECUTION_STREAMS 2
#define EXECUTION_ENV_MAX 8192 /* bytes of its own environment that are kept, to be told */

struct execution_view {
	const char *id, *sandbox_id;
	const char *name, *user;
	const char *cwd; /* that it began in; "": the user's home */
	enum execution_kind kind;
	bool terminal;
	struct strings command; /* the arguments */
	struct strings env;     /* its own, while it runs in the background; none: an earlier server
				   began it */
	enum execution_status status;
	const char *shown_status; /* see execution_shown_status */
	int64_t pid;
	int64_t exit_code; /* 124 on timeout, 128+n for a signal */
	int64_t signal;    /* 0: none */
	bool timed_out, oom_killed, truncated;
	int64_t started_ms, duration_us;
	int64_t ended_ms; /* 0: it runs */
	int64_t cpu_us;   /* of it and everything it started; 0 until it has ended */
	int64_t peak;     /* bytes resident in its largest process; 0 until it has ended */
	bool input_open;
	uint64_t input_offset;              /* given so far */
	uint64_t length[EXECUTION_STREAMS]; /* written by the process so far */
	uint64_t stored[EXECUTION_STREAMS]; /* kept, from byte 0 */
};

/* The status in a list of processes: that of a job tells how it ended. */
const char *execution_shown_status(
	enum execution_kind kind, enum execution_status status, int64_t exit_code);

/* Whether a struct execution_view has ended. */
bool execution_is_over(const void *view);

/* As the result of a command, and as a process of a sandbox. */
extern const struct field_table execution_model, process_model;

/* The current usage of a process and its descendants, as the kernel counts it. */
struct execution_usage {
	int64_t cpu_us, memory, peak;
	int64_t processes;
	int64_t state;   /* of the main process, a letter as in /proc; 0 once it has exited */
	const char *cwd; /* of the main process */
};

/* In an answer behind process_model. */
extern const struct field_table execution_usage_model;

/* Says by what a request names an execution. */
enum execution_by {
	EXECUTION_BY_ID,
	EXECUTION_BY_ANY, /* of a sandbox: id, pid in digits, or name */
	EXECUTION_BY_PID, /* of a sandbox */
	EXECUTION_BY_NAME /* of a sandbox: the newest of the name */
};

struct execution_ref {
	enum execution_by by;
	const char *text; /* id or name */
	int64_t pid;
	unsigned kinds; /* bits of 1 << enum execution_kind that it may be of; 0: any */
};

/* Returns the number of "TERM" or "SIGTERM", or 0 if there is no such signal. */
int execution_signal_of(const char *name);

/* A query for ended executions, the newest first. */
struct execution_filter {
	const char *tenant;
	const char *sandbox_id; /* NULL: of all sandboxes, also of those that are gone */
	unsigned kinds;         /* bits of 1 << enum execution_kind; 0: all */
	int64_t before_ms;      /* started before this moment and id; 0: the newest */
	const char *before_id;
	unsigned limit;
};
