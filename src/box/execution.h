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

struct execution_spec {
	const char *const *argv; /* NULL-terminated, at least one */
	const char *const
		*env;      /* NAME=VALUE, NULL-terminated; may be NULL. Wins over the sandbox's */
	const char *cwd;   /* NULL: the sandbox's */
	const char *user;  /* NULL: the sandbox's */
	const char *input; /* NULL: no stdin */
	size_t input_len;
	int64_t timeout_ms; /* 0: the sandbox's */
};

#define EXECUTION_STREAMS 2

struct execution_view {
	const char *id, *sandbox_id;
	const char *command; /* the arguments, each with its NUL */
	size_t command_len;
	enum execution_status status;
	int32_t pid;
	int exit_code; /* 124 on timeout, 128+n for a signal */
	int signal;    /* 0: none */
	bool timed_out, oom_killed, truncated;
	int64_t started_ms, duration_us;
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
	void *arg;
	bool paced;
	uint64_t position[EXECUTION_STREAMS]; /* the next byte to read */
	struct execution_watcher *next, *prev;
};

int execution_start(struct sandbox *s, const struct execution_spec *spec, struct execution **ret,
	struct error *e);
/* While it runs, and until its end is committed. */
struct execution *execution_find(struct box *b, const char *tenant, const char *id);
void execution_view(const struct execution *x, struct execution_view *out);
bool execution_has_started(const struct execution *x);
bool execution_has_ended(const struct execution *x);
/* Why it was refused (unknown user, no such directory, no process left); NULL when it was not. */
const struct error *execution_refusal(const struct execution *x);
/* Kills it with everything it started. */
void execution_cancel(struct execution *x);

/* An execution lives at least as long as it is watched. */
void execution_watch(struct execution *x, struct execution_watcher *w);
void execution_unwatch(struct execution *x, struct execution_watcher *w);
/* Appends up to max bytes from the watcher's position and moves it; false on an I/O error. */
bool execution_read(struct execution *x, struct execution_watcher *w, unsigned stream, size_t max,
	struct buf *out);

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

/* One that ended and is no longer in memory; view is NULL when there is none. The copies are given
 * away. */
typedef void execution_loaded_fn(
	void *arg, const struct execution_view *view, struct output_copy copies[EXECUTION_STREAMS]);
void execution_load(
	struct box *b, const char *tenant, const char *id, execution_loaded_fn *loaded, void *arg);
