/*
 * Builds as data: what one is to do, and how far it came. What a build makes is a version of a
 * template (model/template.h), either by steps on top of another one or by taking in an archive.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/template.h"

enum build_status {
	BUILD_WAITING, /* not started, or for its turn */
	BUILD_BUILDING,
	BUILD_READY,
	BUILD_FAILED,
	BUILD_CANCELLED,
	BUILD_STATUS_COUNT
};

extern const char *const build_status_names[];
const char *build_status_name(enum build_status status);

/* Steps of a build are numbered from 1; 0 is the template that it begins with. */
#define BUILD_STEP_BASE     0
#define BUILD_STEP_FINALIZE (-1)
/* "base", "1", "2", …, "finalize" */
void build_step_name(int64_t step, char out[FIELD_CODE_SIZE]);

/* Settings that sandboxes get from a template besides files. */
struct template_config {
	const char *user, *workdir; /* "": as without a template */
	struct strings env;         /* NAME=VALUE */
	struct strings start; /* arguments of what runs in every sandbox from its creation on */
	const char *ready; /* a shell line that succeeds once `start` is; "": nothing to wait for */
	int64_t ready_timeout_ms; /* 0: the default */
	/* As the image or the Dockerfile had them; nothing here acts on them. */
	struct strings entrypoint, command;
	struct strings ports; /* "8080/tcp" */
	int64_t memory, cpu;  /* of its sandboxes, unless they ask for their own; 0: the server's */
};

struct build_view {
	const char *id, *template_id, *name;
	enum build_status status;
	const char *reason;   /* why it failed; "" */
	enum error_code code; /* of that, as long as the server lives */
	int64_t failed_step;
	const char *from;   /* what it began with, as a template name, or the kind of archive */
	const char *digest; /* of an imported image's manifest, "sha256:…"; "" */
	int64_t created_ms, started_ms, ended_ms; /* 0: not yet */
	int64_t bytes;                            /* of what it added */
	uint64_t log_entries;
	struct template_config config;
	const char *const *tags; /* that are names for it; NULL ends */
};

/* The API writes the tags, which are a row of kind FIELD_OWN. */
extern const struct field_table build_model;

struct build_new {
	const char *tenant;
	const char *name;        /* of the template, which is made when there is none */
	const char *description; /* NULL: as it is */
	const char *const *tags; /* given when it is ready; NULL-terminated. NULL: "latest" */
	int64_t memory, cpu;     /* see template_config */
};

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
	int64_t timeout_ms;                     /* for all of it; 0: the default */
	const struct network_settings *network; /* NULL: the server's default */
	bool no_cache;
};

/* The length of the names of build archives, in lower case hex digits. */
#define CONTEXT_HASH_LEN 64

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

/* ---- what happens ---- */

struct build_log_entry {
	int64_t time_ms;
	const char *level; /* "debug", "info", "warn", "error" */
	int64_t step;
	const char *message; /* any bytes, without NUL and line feed */
};

/* The API adds the entry's number, which is not in the table. */
extern const struct field_table build_log_model;
