/*
 * The model: sandboxes, their executions and files, for every dialect. It knows init's frames, the
 * warden's requests and the store's rows; it knows nothing of HTTP, JSON or SQL.
 *
 * Everything here runs on one loop. Calls that need time take a callback, which is always called
 * exactly once, never before the call has returned.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/id.h"
#include "wire/warden.h"

struct box;
struct sandbox;
struct execution;
struct store;

/* ---- the core ---- */

struct resources {
	int64_t memory;     /* bytes */
	int64_t cpu;        /* millicores */
	int64_t pids;       /* processes and threads */
	int64_t open_files; /* per process */
};

struct box_config {
	struct resources defaults, maxima;
	int64_t output_limit; /* bytes kept of a stream */
	int64_t retention_ms; /* how long ended executions can be asked for */
	unsigned pool_size;   /* sandboxes kept booted for the next create */
	unsigned sandboxes_per_tenant;
	unsigned executions_per_sandbox; /* at once */
	const char *run_dir;             /* where the inits' sockets are */
	const char *spool_dir;           /* where long output is kept */
};

/* The callback comes when every sandbox that survived is connected again: now requests can be
 * served. */
int box_open(struct box **ret, uv_loop_t *loop, struct store *store, int warden_fd,
	const struct box_config *config, void (*ready)(void *arg), void *arg, struct error *e);
/* The warden is gone: nothing can be booted or destroyed any more. */
void box_on_warden_lost(struct box *b, void (*lost)(void *arg), void *arg);
/* With drain every sandbox is destroyed first; otherwise they go on without us. */
void box_close(struct box *b, bool drain, void (*closed)(void *arg), void *arg);

const struct box_config *box_config(const struct box *b);

struct box_counters {
	uint64_t sandboxes, pooled;
	uint64_t created_total, destroyed_total, boot_failures_total;
	uint64_t executions_running, executions_total, timeouts_total, oom_kills_total;
};
void box_counters(const struct box *b, struct box_counters *out);
uint32_t box_layers(const struct box *b); /* enum warden_layer */

/* ---- templates ---- */

struct template_info {
	const char *name;
	const char *description;
	bool is_default;
};

const struct template_info *template_at(size_t index); /* NULL ends */
const struct template_info *template_find(const char *name);

/* ---- sandboxes ---- */

enum sandbox_status {
	SANDBOX_CREATING,
	SANDBOX_IDLE,
	SANDBOX_RUNNING,
	SANDBOX_STOPPING,
	SANDBOX_FAILED,
	SANDBOX_DELETED,
	SANDBOX_STATUS_COUNT
};

const char *sandbox_status_name(enum sandbox_status status);

struct file_spec {
	const char *path; /* absolute, or relative to the working directory */
	const char *content;
	size_t len;
	unsigned mode;
};

struct sandbox_spec {
	const char *tenant;
	const char *template_name; /* NULL: the default */
	const char *name;          /* NULL or "": none */
	const char *description;
	const char *user;    /* NULL: "user" */
	const char *workdir; /* NULL: the user's home */
	const char *project;
	const char *metadata;
	const char *const *env;     /* NAME=VALUE, NULL-terminated; may be NULL */
	struct resources resources; /* 0 in a field: the default */
	int64_t idle_ms, execution_ms;
	bool ephemeral; /* ends with its first execution */
	const struct file_spec *files;
	size_t file_count;
};

/* A sandbox as everybody may read it. */
struct sandbox_view {
	const char *id, *tenant, *name, *description, *template_name, *user, *workdir, *project;
	const char *metadata;
	const char *env; /* NAME=VALUE strings, each with its NUL */
	size_t env_len;
	enum sandbox_status status;
	const char *failure; /* "": none */
	struct resources resources;
	int64_t idle_ms, execution_ms;
	int64_t created_ms, last_active_ms;
	int64_t expires_ms; /* 0: not by time */
	int64_t startup_us;
	uint64_t executions;
};

/* On failure sandbox is NULL, and nothing is left of it. */
typedef void sandbox_created_fn(void *arg, struct sandbox *sandbox, const struct error *e);
int sandbox_create(struct box *b, const struct sandbox_spec *spec, sandbox_created_fn *created,
	void *arg, struct error *e);

/* NULL both for what does not exist and for what is somebody else's. */
struct sandbox *sandbox_find(struct box *b, const char *tenant, const char *id);
/* In the order of creation, those of one tenant: the first, or the first behind a place in that
 * order. */
struct sandbox *sandbox_first(
	struct box *b, const char *tenant, int64_t after_ms, const char *after_id);
struct sandbox *sandbox_next(const struct sandbox *s);
void sandbox_view(const struct sandbox *s, struct sandbox_view *out);

/* done may be NULL. A second call while the first is under way waits for the same end. */
void sandbox_destroy(struct sandbox *s, void (*done)(void *arg), void *arg);

/* ---- executions ---- */

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

/* ---- files ---- */

/* Whose they are and where relative paths begin; NULL: as the sandbox has it. */
struct files_owner {
	const char *user;
	const char *cwd;
};

/* Writes them one after the other; stops at the first that fails. Everything is copied. */
void files_write(struct sandbox *s, const struct files_owner *owner, const struct file_spec *files,
	size_t count, void (*done)(void *arg, const struct error *e), void *arg);
