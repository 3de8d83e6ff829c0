/* Sandboxes: made, found, listed, destroyed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "box/box.h"
#include "box/files.h"

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
/* The same backwards: the last, or the last before a place. */
struct sandbox *sandbox_last(
	struct box *b, const char *tenant, int64_t before_ms, const char *before_id);
struct sandbox *sandbox_previous(const struct sandbox *s);
/* Of whichever tenant, for callers that have shown a token of the sandbox itself. */
struct sandbox *sandbox_find_any(struct box *b, const char *id);
/* The first of whichever tenant that matches. */
struct sandbox *sandbox_search(
	struct box *b, bool (*matches)(void *arg, const char *id), void *arg);
void sandbox_view(const struct sandbox *s, struct sandbox_view *out);

/* done may be NULL. A second call while the first is under way waits for the same end. */
void sandbox_destroy(struct sandbox *s, void (*done)(void *arg), void *arg);
