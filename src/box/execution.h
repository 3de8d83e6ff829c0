/* Commands: started, watched, read, ended, and found again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct box;
struct sandbox;
struct execution;

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
enum execution_status execution_status_of(const char *name);

/* What it was started as. */
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
	bool open_stdin; /* more is given by execution_input_write */
	bool terminal;   /* stdin, stdout and stderr are one; stdin is open */
	uint16_t rows, columns;
	enum execution_kind kind;
	bool attended;      /* somebody is to wait for it; known again after a restart */
	int64_t timeout_ms; /* 0: the sandbox's */
	bool unlisted;      /* of ours, although it is no file work: not counted, not stored */
};

#define EXECUTION_STREAMS 2

struct execution_view {
	const char *id, *sandbox_id;
	const char *name, *user;
	const char *cwd; /* that it began in; "": the user's home */
	enum execution_kind kind;
	bool terminal;
	const char *command; /* the arguments, each with its NUL */
	size_t command_len;
	enum execution_status status;
	int32_t pid;
	int exit_code; /* 124 on timeout, 128+n for a signal */
	int signal;    /* 0: none */
	bool timed_out, oom_killed, truncated;
	int64_t started_ms, duration_us;
	int64_t cpu_us; /* of it and everything it started; 0 until it has ended */
	int64_t peak;   /* bytes resident in its largest process; 0 until it has ended */
	bool input_open;
	uint64_t input_offset;              /* given so far */
	uint64_t length[EXECUTION_STREAMS]; /* written by the process so far */
	uint64_t stored[EXECUTION_STREAMS]; /* kept, from byte 0 */
};

/*
 * Whoever wants to know. `changed` is called when the execution has started, was refused, has new
 * output or has ended; it must not watch or unwatch others. A watcher that is `paced` holds the
 * process back when it reads slowly; it sees every byte, even those beyond what is kept.
 */
struct execution_watcher {
	void (*changed)(void *arg);
	void (*room)(void *arg); /* stdin has room again; may be NULL */
	/* The last of the others has gone, and it runs on; may be NULL. Unwatches nobody. */
	void (*alone)(void *arg);
	void *arg;
	bool paced;
	bool ignores[EXECUTION_STREAMS]; /* it does not read these, and holds nobody back there */
	uint64_t position[EXECUTION_STREAMS]; /* the next byte to read */
	struct execution_watcher *next, *prev;
};

int execution_start(struct sandbox *s, const struct execution_spec *spec, struct execution **ret,
	struct error *e);
/*
 * While it runs, and until its end is committed. tenant NULL, here and in execution_load: of
 * whichever, for callers that have shown a token of the execution itself.
 */
struct execution *execution_find(struct box *b, const char *tenant, const char *id);
void execution_view(const struct execution *x, struct execution_view *out);
bool execution_has_started(const struct execution *x);
bool execution_has_ended(const struct execution *x);
/* Its program does not exist, or cannot be executed. */
bool execution_has_no_program(const struct execution *x);
/* Why it was refused (unknown user, no such directory, no process left); NULL when it was not. */
const struct error *execution_refusal(const struct execution *x);
/* Those of a sandbox that run, or whose end is not in the store yet. */
struct execution *execution_first(const struct sandbox *s);
struct execution *execution_next(const struct execution *x);
/* Of all tenants those that run and are to be attended: it may be watched. */
void execution_each_attended(
	struct box *b, void (*each)(void *arg, struct execution *x), void *arg);
struct execution *execution_find_pid(const struct sandbox *s, int32_t pid);
struct execution *execution_find_name(const struct sandbox *s, const char *name);

/* Somebody knows its id before its end: it is not forgotten, whatever dies. Background ones are. */
void execution_record(struct execution *x);

/* ---- what is said to one that runs; nothing happens when it has ended ---- */

/* "TERM" or "SIGTERM"; 0: there is no such signal. */
int execution_signal_of(const char *name);
/* To its main process, or to everything it started, too. */
void execution_signal(struct execution *x, int number, bool tree);
/* SIGTERM for all of it, SIGKILL when that has not been enough. */
void execution_stop(struct execution *x, int64_t grace_ms);
/* Kills it with everything it started. */
void execution_cancel(struct execution *x);
/* false: it has no terminal, or no terminal is that large. */
bool execution_resize(struct execution *x, unsigned rows, unsigned columns);

/*
 * Stdin that was left open, by absolute offsets. What has been written but not been read by the
 * process is bounded; `room` of a watcher tells when there is place again. A front that dies takes
 * nothing with it that was delivered.
 */
bool execution_input_is_open(const struct execution *x);
/* It was left open, but the process reads no more: what is written is dropped. */
bool execution_input_is_deaf(const struct execution *x);
size_t execution_input_room(const struct execution *x);
/* Returns how much was taken: not more than there was room for. */
size_t execution_input_write(struct execution *x, const void *data, size_t len);
void execution_input_close(struct execution *x);
uint64_t execution_input_offset(const struct execution *x);    /* written so far */
uint64_t execution_input_delivered(const struct execution *x); /* taken by the process */

/* What a process and everything it started use now, as the kernel counts it. */
struct execution_usage {
	int64_t cpu_us, memory, peak;
	unsigned processes;
	char state;      /* of the main process, as in /proc; 0 once it has exited */
	const char *cwd; /* of the main process */
};

/* Asked of one that runs. `done` is called once, with NULL when it ends first. */
struct execution_inspection {
	void (*done)(void *arg, const struct execution_usage *usage);
	void *arg;
	struct execution_inspection *next, *prev;
};

void execution_inspect(struct execution *x, struct execution_inspection *i);
/* done will not be called. Not after it was. */
void execution_uninspect(struct execution *x, struct execution_inspection *i);

/* An execution lives at least as long as it is watched. */
void execution_watch(struct execution *x, struct execution_watcher *w);
void execution_unwatch(struct execution *x, struct execution_watcher *w);
/* Whether w is the only one. */
bool execution_watched_by_none_but(const struct execution *x, const struct execution_watcher *w);
/* Appends up to max bytes from the watcher's position and moves it; false on an I/O error. */
bool execution_read(struct execution *x, struct execution_watcher *w, unsigned stream, size_t max,
	struct buf *out);

/* How far those who paced it have read: behind that is what everybody has missed. */
void execution_seen(const struct execution *x, uint64_t position[EXECUTION_STREAMS]);
/* What is behind these positions was read, but has not arrived: nobody who still watches has it. */
void execution_unsee(struct execution *x, const uint64_t position[EXECUTION_STREAMS]);

/* What is kept of a stream, to be read at leisure: the execution may be gone meanwhile. */
struct output_copy {
	struct buf memory;
	int fd; /* -1: it is all in memory */
	uint64_t length;
};

void execution_copy_output(const struct execution *x, struct output_copy copies[EXECUTION_STREAMS]);
/* Appends up to max bytes from *position, which moves; negative when they cannot be read. */
int output_copy_read(const struct output_copy *c, uint64_t *position, size_t max, struct buf *out);
void output_copy_finish(struct output_copy *c);

/*
 * One that has ended and is no longer in memory; NULL when there is none. It lives as long as it is
 * watched, at least until the callback returns.
 */
typedef void execution_loaded_fn(void *arg, struct execution *x);
/* Of a given sandbox a name will do, too: the newest of the name. sandbox_id NULL: by its id only.
 */
void execution_load(struct box *b, const char *tenant, const char *sandbox_id, const char *id,
	execution_loaded_fn *loaded, void *arg);

/* Those that have ended, the newest first. */
struct execution_filter {
	const char *tenant;
	const char *sandbox_id; /* NULL: of all sandboxes, also of those that are gone */
	unsigned kinds;         /* bits of 1 << enum execution_kind; 0: all */
	int64_t before_ms;      /* started before this moment and id; 0: the newest */
	const char *before_id;
	unsigned limit;
};

/* Called for each, then once with NULL. */
typedef void execution_listed_fn(void *arg, const struct execution_view *view);
void execution_list_ended(struct box *b, const struct execution_filter *filter,
	execution_listed_fn *listed, void *arg);
