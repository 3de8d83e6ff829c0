/* Commands: started, watched, read, ended, and found again. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "box/process/spool.h"
#include "model/execution.h"

struct box;
struct sandbox;
struct execution;

/*
 * A watcher of an execution. `changed` is called when the execution has started, was refused, has
 * new output or has ended; it must not watch or unwatch others. A watcher that is `paced` holds the
 * process back when it reads slowly; it sees every byte, even those beyond what is kept.
 */
struct execution_watcher {
	void (*changed)(void *arg);
	void (*room)(void *arg); /* stdin has room again; may be NULL */
	/*
	 * Called when the last other watcher has gone and the execution runs on; may be NULL. It
	 * must not unwatch others.
	 */
	void (*alone)(void *arg);
	/* Returns the position that the reader has certainly received; NULL: its position. */
	void (*arrived)(void *arg, uint64_t position[EXECUTION_STREAMS]);
	void *arg;
	bool paced;
	bool glances;                         /* looks once: does not count as attendance */
	bool ignores[EXECUTION_STREAMS];      /* streams that it neither reads nor holds back */
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
/* Returns the sandbox of a process that ran before a restart, if its init has not answered yet. */
struct sandbox *execution_awaits(struct box *b, const char *tenant, const char *id);
void execution_view(const struct execution *x, struct execution_view *out);
bool execution_has_started(const struct execution *x);
/*
 * Its process is gone and its result is final. Who is slow to read beyond what is kept may find the
 * rest of the output still coming: it is there up to view.length.
 */
bool execution_has_ended(const struct execution *x);
/* Returns whether the execution ended with its sandbox before all of its output was read. */
bool execution_was_cut(const struct execution *x);
/* Returns whether the program does not exist or cannot be executed. */
bool execution_has_no_program(const struct execution *x);
/* Why it was refused (unknown user, no such directory, no process left); NULL when it was not. */
const struct error *execution_refusal(const struct execution *x);
/* Walks the executions of a sandbox that run, or whose end is not in the store yet. */
struct execution *execution_first(const struct sandbox *s);
struct execution *execution_next(const struct execution *x);
/*
 * Calls `each` with the running executions of all tenants that are to be attended. It may watch
 * them.
 */
void execution_each_attended(
	struct box *b, void (*each)(void *arg, struct execution *x), void *arg);
struct execution *execution_find_pid(const struct sandbox *s, int32_t pid);
struct execution *execution_find_name(const struct sandbox *s, const char *name);

/*
 * Records an execution whose id was told before its end, so that it is found after a crash.
 * Background processes are recorded anyway.
 */
void execution_record(struct execution *x);

/* ---- controlling a running execution; nothing happens to an ended one ---- */

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
/* Returns whether stdin was left open, but the process reads no more: input is dropped. */
bool execution_input_is_deaf(const struct execution *x);
size_t execution_input_room(const struct execution *x);
/* Returns how much was taken: not more than there was room for. */
size_t execution_input_write(struct execution *x, const void *data, size_t len);
void execution_input_close(struct execution *x);
uint64_t execution_input_offset(const struct execution *x);    /* written so far */
uint64_t execution_input_delivered(const struct execution *x); /* taken by the process */

/* Usage of a running execution. `done` is called once, with NULL when the execution ends first. */
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

/* The end of what has come of each stream; view.length may be further. */
void execution_arrived(const struct execution *x, uint64_t end[EXECUTION_STREAMS]);
/*
 * Returns the position that all paced watchers have certainly received: later bytes may have been
 * missed.
 */
void execution_seen(const struct execution *x, uint64_t position[EXECUTION_STREAMS]);
/* Rewinds the "seen" positions: bytes behind them were read, but have not arrived at a client. */
void execution_unsee(struct execution *x, const uint64_t position[EXECUTION_STREAMS]);

/* A copy of what is kept of a stream, which may outlive the execution. */
struct output_copy {
	struct buf memory;
	bool spooled; /* it is not in memory */
	struct spool_file file;
	uint64_t length;
};

void execution_copy_output(const struct execution *x, struct output_copy copies[EXECUTION_STREAMS]);
/* Appends up to max bytes from *position, which moves; negative when they cannot be read. */
int output_copy_read(struct output_copy *c, uint64_t *position, size_t max, struct buf *out);
void output_copy_finish(struct output_copy *c);

/*
 * One that has ended and is no longer in memory; NULL when there is none, or when it could not be
 * read: then e says why. It lives as long as it is watched, at least until the callback returns.
 */
typedef void execution_loaded_fn(void *arg, struct execution *x, const struct error *e);
/*
 * Loads an ended execution by id, or by name in a given sandbox: the newest of that name.
 * sandbox_id NULL: by id only.
 */
void execution_load(struct box *b, const char *tenant, const char *sandbox_id, const char *id,
	execution_loaded_fn *loaded, void *arg);

/* Called for each, then once with NULL, and e if they could not be read. */
typedef void execution_listed_fn(
	void *arg, const struct execution_view *view, const struct error *e);
void execution_list_ended(struct box *b, const struct execution_filter *filter,
	execution_listed_fn *listed, void *arg);
