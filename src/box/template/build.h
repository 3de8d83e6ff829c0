/*
 * How templates come about. A build is made first, and has a name then; it is started with what it
 * is to do: steps on top of another template, or an archive to take in. Both happen in a throwaway
 * sandbox, whose disk is kept after each step, so that the next build with the same beginning goes
 * on from there.
 *
 * A build ends ready, failed or cancelled. One that the server did not survive is failed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "box/core/box.h"
#include "box/template/template.h"

enum build_status {
	BUILD_WAITING, /* not started, or for its turn */
	BUILD_BUILDING,
	BUILD_READY,
	BUILD_FAILED,
	BUILD_CANCELLED,
	BUILD_STATUS_COUNT
};

const char *build_status_name(enum build_status status);

/* Where in a build something happens: 0 is what it begins with, then the steps from 1. */
#define BUILD_STEP_BASE     0
#define BUILD_STEP_FINALIZE (-1)
/* "base", "1", "2", …, "finalize" */
void build_step_name(int step, char out[16]);

/*
 * What sandboxes get from a template besides files. Lists are strings with a NUL each, one behind
 * the other; a length of 0 is none.
 */
struct template_config {
	const char *user, *workdir; /* "": as without a template */
	const char *env;            /* NAME=VALUE */
	size_t env_len;
	const char *start; /* arguments of what runs in every sandbox from its creation on */
	size_t start_len;
	const char *ready; /* a shell line that succeeds once `start` is; "": nothing to wait for */
	int64_t ready_timeout_ms; /* 0: the default */
	/* As the image or the Dockerfile had them; nothing here acts on them. */
	const char *entrypoint, *command;
	size_t entrypoint_len, command_len;
	const char *ports; /* "8080/tcp" */
	size_t ports_len;
	int64_t memory, cpu; /* of its sandboxes, unless they ask for their own; 0: the server's */
};

struct build_view {
	const char *id, *template_id, *name;
	enum build_status status;
	const char *reason;   /* why it failed; "" */
	enum error_code code; /* of that, as long as the server lives */
	int failed_step;
	const char *from;   /* what it began with, as a template name, or the kind of archive */
	const char *digest; /* of an imported image's manifest, "sha256:…"; "" */
	int64_t created_ms, started_ms, ended_ms; /* 0: not yet */
	int64_t bytes;                            /* of what it added */
	uint64_t log_entries;
	struct template_config config;
};

struct build_new {
	const char *tenant;
	const char *name;        /* of the template, which is made when there is none */
	const char *description; /* NULL: as it is */
	const char *const *tags; /* given when it is ready; NULL-terminated. NULL: "latest" */
	int64_t memory, cpu;     /* see template_config */
};

typedef void build_made_fn(void *arg, struct build *build, const struct error *e);
int build_create(struct box *b, const struct build_new *what, build_made_fn *made, void *arg,
	struct error *e);
/* By id; of this tenant. */
struct build *build_find(struct box *b, const char *tenant, const char *id);
void build_view(const struct build *build, struct build_view *out);
struct template *build_template(const struct build *build); /* NULL: that is deleted */
/* One that was never started: as if it had not been made. */
void build_discard(struct build *build);
/* Ends what is under way, and what was never started. Nothing happens to one that has ended. */
void build_cancel(struct build *build);

/* ---- from steps ---- */

enum build_step_kind {
	BUILD_RUN,     /* argv; user */
	BUILD_COPY,    /* context, source, path; user: its owner; mode */
	BUILD_ENV,     /* env */
	BUILD_WORKDIR, /* path: made if it is not there, and where later steps and sandboxes begin
			*/
	BUILD_USER,    /* user: of later steps and of sandboxes */
	BUILD_STEP_KINDS
};

struct build_step {
	enum build_step_kind kind;
	const char *const *argv; /* NULL-terminated */
	const char *user;        /* RUN, COPY: NULL is the current one, and for COPY root */
	const char *const *env;  /* NAME=VALUE, NULL-terminated */
	/*
	 * COPY takes what the context has at `source` ("" or ".": all of it) to `path`, as Docker
	 * does: of a directory the content is merged into `path`; a file goes into `path` when that
	 * ends with '/' or is a directory, and is renamed to it otherwise. Relative paths begin at
	 * the working directory.
	 */
	const char *context; /* see context_begin */
	const char *source;
	const char *path;
	int mode;   /* COPY: of every file; -1: as they are */
	bool force; /* done anew, with all that follows */
};

struct build_spec {
	const char *from; /* a template, see template_resolve */
	const struct build_step *steps;
	size_t step_count;
	const char *const *start; /* NULL: that of `from` */
	const char *ready;        /* NULL: that of `from`, unless `start` is given */
	int64_t ready_timeout_ms; /* 0: the default */
	const char *const *entrypoint, *const *command, *const *ports; /* NULL: those of `from` */
	int64_t timeout_ms; /* for all of it; 0: the default */
	bool no_cache;
};

/* Once per build. What is wrong with the spec itself is told at once; everything else is in the
 * build's end. */
int build_start(struct build *build, const struct build_spec *spec, struct error *e);
/* Calls back when what is known of it now has been stored: only then is it acknowledged. */
void build_when_stored(struct build *build, void (*stored)(void *arg), void *arg);

/* ---- files for COPY: tar archives, plain or compressed by gzip or zstd ---- */

#define CONTEXT_HASH_LEN 64 /* of lower case hex digits */

/* Known by a hash that the client made, per tenant; kept for a while after its last use. */
bool context_exists(struct box *b, const char *tenant, const char *hash);

struct context_upload;
/* With `verify` the hash must be the SHA-256 of the bytes. */
int context_begin(struct box *b, const char *tenant, const char *hash, bool verify,
	struct context_upload **ret, struct error *e);
int context_write(struct context_upload *u, const char *data, size_t len, struct error *e);
/* Frees it, also on failure. */
int context_end(struct context_upload *u, struct error *e);
void context_abort(struct context_upload *u);

/* ---- from an archive: a root, what `docker save` writes, or an OCI layout ---- */

enum import_format {
	IMPORT_AUTO, /* by what is in it */
	IMPORT_ROOT,
	IMPORT_DOCKER,
	IMPORT_OCI
};

struct import_spec {
	enum import_format format;
	const char *ref;    /* the image, if there are several; NULL */
	const char *digest; /* "sha256:…", what the manifest must have; NULL */
	const char *origin; /* where it comes from, to be shown; NULL */
	int64_t timeout_ms; /* 0: the default */
};

/*
 * A tar archive, plain or compressed by gzip or zstd, is given as it comes. `room` is called after
 * build_import_room was 0. When the build has ended, by itself or by build_cancel, nothing of this
 * may be called any more.
 */
int build_import(struct build *build, const struct import_spec *spec, void (*room)(void *arg),
	void *arg, struct error *e);
size_t build_import_room(const struct build *build);
void build_import_data(struct build *build, const char *data, size_t len);
void build_import_end(struct build *build);

/* ---- what happens ---- */

struct build_log_entry {
	int64_t time_ms;
	const char *level; /* "debug", "info", "warn", "error" */
	int step;
	const char *message; /* any bytes, without NUL and line feed */
};

/*
 * Gives up to max entries to `each`, beginning with entry number `from` (the first one is 0).
 * Returns the number of the entry after the last one given.
 */
uint64_t build_log_read(struct build *build, uint64_t from, size_t max,
	void (*each)(void *arg, const struct build_log_entry *entry), void *arg);

/* `changed` is called when there are new entries and when the status has changed, from the loop. */
struct build_watcher {
	void (*changed)(void *arg);
	void *arg;
	struct build_watcher *prev, *next;
};
/* A build that is watched stays, also when its template is deleted. */
void build_watch(struct build *build, struct build_watcher *w);
void build_unwatch(struct build *build, struct build_watcher *w);
