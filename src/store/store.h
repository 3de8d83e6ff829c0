/*
 * Durable state: sandboxes as they were intended, executions as they ended, API keys by their hash.
 *
 * Writes go to a thread of their own and are committed in groups; `done` runs on the loop, after
 * the commit, in the order of the calls. What one turn of the loop asks for is committed together.
 * Reads have another thread: they see every write that was asked for before them, and no write
 * waits for them. SQL is nowhere else. The struct's strings are borrowed: by the store until the
 * call returns, by the reader until its callback returns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "base/id.h"
#include "model/sandbox.h"

struct store;

/* error: 0, or negative with the reason in the log. */
typedef void store_done_fn(void *arg, int error);
/* As store_done_fn, for a row to be added. is_new: there was no row with its key. */
typedef void store_added_fn(void *arg, int error, bool is_new);
/*
 * row is NULL when there is none, or no more, or when they could not be read: then error is not 0.
 * It is valid for the time of the call.
 */
typedef void store_found_fn(void *arg, const void *row, int error);
/* Fills *e for a caller whose call had such an error: what could not be done, and why. */
int store_error(struct error *e, int error, const char *what);

int store_open(struct store **ret, uv_loop_t *loop, const char *path, struct error *e);
/* Something was asked for and has not been called back. */
bool store_is_busy(const struct store *s);
/* Waits until everything that was asked for is committed, then runs the callbacks. */
void store_close(struct store *s);

void store_put_sandbox(
	struct store *s, const struct sandbox_record *row, store_done_fn *done, void *arg);
/* Marks a sandbox as ended: the row stays for later look-ups. */
void store_end_sandbox(struct store *s, const char *id, const char *status, const char *ended_by,
	int64_t ended_ms, store_done_fn *done, void *arg);
void store_put_usage(struct store *s, const char *id, int64_t cpu_us, int64_t memory_byte_seconds);
/* Finds a sandbox of any tenant, ended or not. */
void store_find_sandbox(struct store *s, const char *id, store_found_fn *found, void *arg);
/* found is called with NULL when none of this id and tenant has ended. */
void store_get_ended_sandbox(
	struct store *s, const char *id, const char *tenant, store_found_fn *found, void *arg);

enum ended_order {
	ENDED_BY_CREATION,
	ENDED_BY_END,
	ENDED_BY_NAME,
	ENDED_BY_STATUS,
	ENDED_BY_EPHEMERAL,
	ENDED_BY_EXECUTIONS
};

struct ended_query {
	const char *tenant, *status;
	const char *name, *project, *snapshot; /* "": any */
	int ephemeral;                         /* -1: either */
	/* Made after this moment and id, or before them if backwards; -1 and "": whenever. */
	int64_t after_ms;
	const char *after_id;
	enum ended_order order;
	bool backwards;
	bool counts; /* tells how many there are in all */
	int64_t offset;
	unsigned limit;
};

/*
 * Calls found for each, and at the end with NULL and how many there are in all (0 if they were not
 * to be counted), or a negative error when they could not be read.
 */
void store_list_ended_sandboxes(struct store *s, const struct ended_query *query,
	void (*found)(void *arg, const struct sandbox_record *row, int64_t total), void *arg);
/* Names a row that is gone; NULL: that was all. */
typedef void store_expired_fn(void *arg, const char *id);
/* Forget at most `limit` of those that ended before, the oldest first, and their events. */
void store_expire_sandboxes(
	struct store *s, int64_t before_ms, unsigned limit, store_expired_fn *each, void *arg);

struct event_row {
	const char *sandbox; /* NULL in what is listed */
	int64_t number, time_ms;
	const char *type, *cause;
	struct strings details; /* NAME=VALUE */
};

void store_put_event(struct store *s, const struct event_row *row, store_done_fn *done, void *arg);
/* Forget those of one sandbox up to a number. */
void store_expire_events(struct store *s, const char *sandbox, int64_t up_to);
/* rows is NULL when they could not be read. */
typedef void store_events_fn(void *arg, const struct event_row *rows, size_t count);
/*
 * Lists events with a greater number, or backwards those with a smaller one (0: from the newest).
 */
void store_list_events(struct store *s, const char *tenant, const char *sandbox, int64_t after,
	bool backwards, unsigned limit, store_events_fn *found, void *arg);
/* Calls `each` with every sandbox that has not ended. At start, before the loop runs. */
int store_each_sandbox(struct store *s, void (*each)(void *arg, const void *row), void *arg);

struct execution_row {
	const char *id;
	const char *sandbox;
	const char *tenant;
	struct strings command; /* the arguments */
	const char *name, *user, *cwd;
	int64_t kind; /* the model's own number */
	bool terminal;
	int64_t pid;
	int64_t cpu_us, peak;
	const char *status;
	int64_t exit_code;
	int64_t signal;
	bool timed_out, oom_killed;
	int64_t started_ms, duration_us;
	int64_t length[2]; /* of stdout and stderr, all of it */
	int64_t stored[2]; /* of which this much was kept */
	bool spooled[2];   /* kept in a file; otherwise in data */
	int64_t kept;      /* bytes on disk that it counts for */
	struct strings data[2];
};

/* Records that an execution runs whose id was told; how it ends is not known yet. */
void store_begin_execution(struct store *s, const struct execution_row *row);
/* Ends all executions of a sandbox whose end is not stored: they were killed with it just now. */
void store_end_begun(struct store *s, const char *sandbox, const char *status, int64_t now_ms);
/* At start, before the loop runs: those that have begun and whose end was never stored. */
int store_each_begun(struct store *s, void (*each)(void *arg, const void *row), void *arg);
/*
 * Stores an execution's end, which replaces what store_begin_execution wrote and is counted in its
 * sandbox. If it is stored already, nothing changes and nothing is counted: is_new says so.
 */
void store_put_execution(
	struct store *s, const struct execution_row *row, store_added_fn *stored, void *arg);
/*
 * found is called with NULL when there is none of this id and tenant. With a sandbox it must be of
 * that one, and a name will do for the id: the newest of the name.
 */
void store_get_execution(struct store *s, const char *id, const char *tenant, const char *sandbox,
	store_found_fn *found, void *arg);
struct execution_query {
	const char *tenant;
	const char *sandbox; /* "": of all */
	unsigned kinds;      /* bits of 1 << kind */
	int64_t before_ms;   /* started before this moment and id */
	const char *before_id;
	unsigned limit;
};

/* The newest first, without their output; each is called once more, with NULL, at the end. */
void store_list_executions(
	struct store *s, const struct execution_query *query, store_found_fn *each, void *arg);
/* Whether one of this id has begun or ended: `found` is called with a row if so, then with NULL. */
void store_know_execution(struct store *s, const char *id, store_found_fn *found, void *arg);

/* An execution that was removed: its spool files can go. */
struct execution_gone {
	const char *id, *tenant;
	int64_t kept;
};

/*
 * Forgets at most `limit` of those that ended before, the oldest first. each is called with a
 * struct execution_gone, at last with NULL.
 */
void store_expire_executions(
	struct store *s, int64_t before_ms, unsigned limit, store_found_fn *each, void *arg);
/* Forgets, likewise, of a tenant's those that were stored first: as few as count for the bytes. */
void store_evict_executions(struct store *s, const char *tenant, unsigned limit, int64_t bytes,
	store_found_fn *each, void *arg);
/* At start, before the loop runs: the sum of `kept` of each tenant. */
int store_each_kept(
	struct store *s, void (*each)(void *arg, const char *tenant, int64_t bytes), void *arg);

/* A context of code. */
struct context_row {
	const char *id;
	const char *sandbox;
	const char *language;
	const char *cwd;  /* "": the sandbox's */
	const char *user; /* "": the sandbox's */
	int64_t is_default;
	int64_t created_ms;
};

void store_put_context(
	struct store *s, const struct context_row *row, store_done_fn *done, void *arg);
void store_delete_context(struct store *s, const char *id, store_done_fn *done, void *arg);
/* In the order of their creation. At start, before the loop runs. */
int store_each_context(struct store *s, void (*each)(void *arg, const void *row), void *arg);

/*
 * Reads the database's identity, with which its disks are marked. "": the database is new, and it
 * is not decided yet that it owns these disks. A database of an older program gets one here.
 */
int store_get_identity(struct store *s, char ret[ID_SIZE], struct error *e);
int store_set_identity(struct store *s, const char id[ID_SIZE], struct error *e);

#define STORE_SECRET_SIZE 32
/* Reads the secret that is stored under this name, or stores *secret. At start only. */
int store_keep_secret(
	struct store *s, const char *name, uint8_t secret[STORE_SECRET_SIZE], struct error *e);
