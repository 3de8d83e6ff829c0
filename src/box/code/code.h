/*
 * Code contexts: interpreters that remember what they ran, and runs of code in them.
 *
 * A context is a name for one long-lived process in a sandbox, a kernel. The kernel is started with
 * the first run, and again after it has died; the context stays until it is deleted or its sandbox
 * is. Runs in one context happen one after the other, contexts work side by side. Each language has
 * one context that is its default, made when it is first asked for.
 *
 * A run's events are pulled by whoever started it, so that a slow reader slows the code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct sandbox;
struct code_context;
struct code_run;

#define CODE_CONTEXTS_MAX 16          /* of a sandbox */
#define CODE_QUEUE_MAX    32          /* runs of a context, the one under way included */
#define CODE_TEXT_MAX     (1u << 20)  /* bytes of a run's code */
#define CODE_VARIABLES    256         /* of a run */
#define CODE_MESSAGE_MAX  (8u << 20)  /* bytes of one result, all its forms together */
#define CODE_BUFFERS_MAX  (64u << 20) /* bytes of results that wait for their readers, of all */
#define CODE_FIELDS_MAX   64          /* of one message */
#define CODE_INTERRUPT_MS 5000        /* that an interrupted kernel has, before it is killed */
#define CODE_CWD_MAX      4000

enum code_language {
	CODE_PYTHON,
	CODE_JAVASCRIPT,
	CODE_BASH,
	CODE_LANGUAGE_COUNT
};

const char *code_language_name(enum code_language language);
/* By any of its names; *e says which there are. */
int code_language_of(const char *name, enum code_language *ret, struct error *e);

/* ---- contexts ---- */

struct code_context_view {
	const char *id;
	enum code_language language;
	const char *cwd; /* that it began in */
	bool is_default;
	bool is_running;     /* code runs in it */
	bool has_kernel;     /* its process lives */
	const char *version; /* of the interpreter; "" before its first start */
	unsigned waiting;    /* runs behind the one under way */
	int64_t created_ms;
};

typedef void code_context_fn(void *arg, struct code_context *c, const struct error *e);

/* Made when its kernel answers; cwd NULL: where the sandbox's commands begin. */
int code_context_create(struct sandbox *s, enum code_language language, const char *cwd,
	code_context_fn *created, void *arg, struct error *e);
/* The default one of a language, which is made if need be; its kernel starts with its first run. */
struct code_context *code_context_default(
	struct sandbox *s, enum code_language language, struct error *e);
struct code_context *code_context_find(const struct sandbox *s, const char *id);
/* In the order of their creation. */
struct code_context *code_context_first(const struct sandbox *s);
struct code_context *code_context_next(const struct code_context *c);
void code_context_view(const struct code_context *c, struct code_context_view *out);
/* Its kernel and everything that it started end, and so do its runs. */
void code_context_delete(
	struct code_context *c, void (*done)(void *arg, const struct error *e), void *arg);
/* With a new kernel, that knows nothing. What runs ends; what waits runs in the new one. */
void code_context_restart(
	struct code_context *c, void (*done)(void *arg, const struct error *e), void *arg);
/* What runs is interrupted; false: nothing does. */
bool code_context_interrupt(struct code_context *c);

/* ---- runs ---- */

enum code_event_type {
	CODE_EVENT_COUNT,  /* which run of its kernel this is */
	CODE_EVENT_STDOUT, /* bytes, text perhaps */
	CODE_EVENT_STDERR,
	CODE_EVENT_RESULT,  /* the value of the last expression */
	CODE_EVENT_DISPLAY, /* what the code displayed */
	CODE_EVENT_ERROR,   /* fields: name, value, traceback */
	CODE_EVENT_END,     /* the last */
	CODE_EVENT_LOST     /* the last: the sandbox is gone */
};

struct code_field {
	const char *data;
	size_t len;
};

/*
 * Whatever it points to came from inside the sandbox, and is good until the next call. A result's
 * fields are pairs: a MIME type and its data; binary data is in base64.
 */
struct code_event {
	enum code_event_type type;
	int64_t count;
	size_t field_count;
	struct code_field fields[CODE_FIELDS_MAX];
};

struct code_run_spec {
	const char *code;
	size_t code_len;
	const char *const *env;     /* NAME=VALUE for this run, NULL-terminated; may be NULL */
	int64_t timeout_ms;         /* from its begin; 0: none */
	void (*changed)(void *arg); /* there may be a next event */
	void *arg;
};

int code_run_start(struct code_context *c, const struct code_run_spec *spec, struct code_run **ret,
	struct error *e);
/* false: not yet. Not after the last one. */
bool code_run_next(struct code_run *r, struct code_event *ret);
/* The last call. A run that has not ended is interrupted, or never begins. */
void code_run_close(struct code_run *r);
