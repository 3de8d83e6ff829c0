/* Code contexts and runs as data: the limits, the languages, what a context is and what a run
 * tells. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/field.h"

#define CODE_CONTEXTS_MAX 16          /* of a sandbox */
#define CODE_QUEUE_MAX    32          /* runs of a context, the one under way included */
#define CODE_TEXT_MAX     (1u << 20)  /* bytes of a run's code */
#define CODE_VARIABLES    256         /* of a run */
#define CODE_MESSAGE_MAX  (8u << 20)  /* bytes of one result, all its forms together */
#define CODE_BUFFERS_MAX  (64u << 20) /* bytes of results that wait for their readers, of all */
#define CODE_FIELDS_MAX   64          /* of one message */
#define CODE_INTERRUPT_MS 5000        /* that an interrupted interpreter has, before it is killed */
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

enum code_context_status {
	CODE_CONTEXT_RUNNING, /* code runs in it */
	CODE_CONTEXT_IDLE,    /* its interpreter waits for code */
	CODE_CONTEXT_STOPPED  /* it has no interpreter now, and gets one with its next run */
};

/* The user and directory of an interpreter. */
struct code_place {
	const char *cwd;  /* NULL: where the sandbox's commands begin */
	const char *user; /* NULL: the sandbox's */
};

struct code_context_view {
	const char *id;
	enum code_language language;
	const char *cwd;  /* that it began in */
	const char *user; /* "": the sandbox's */
	bool is_default;
	enum code_context_status status;
	const char *version; /* of the interpreter; "" before its first start */
	int64_t waiting;     /* runs behind the one under way */
	int64_t created_ms;
};

extern const struct field_table code_context_model;

enum code_event_type {
	CODE_EVENT_COUNT,  /* which run of its interpreter this is */
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
 * Everything that an event points to came from inside the sandbox and is valid during the call. The
 * fields of a result are pairs of a MIME type and its data; binary data is in base64.
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
	const char *const *env; /* NAME=VALUE for this run, NULL-terminated; may be NULL */
	int64_t timeout_ms;     /* from its begin; 0: none */
};
