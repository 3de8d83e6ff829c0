/* Code contexts, as the files of this part see them. */
#pragma once

#include "box/code/code.h"
#include "box/process/execution_core.h"
#include "box/sandbox/object.h"

/* ---- code_language.c ---- */

#define CODE_KEY_LEN 32 /* hexadecimal digits */

/* The argv that starts an interpreter: NULL-terminated, constant texts. */
const char *const *code_language_command(enum code_language language);
/* Writes the first command to a new interpreter. */
void code_language_load(enum code_language language, const char *key, struct buf *out);
/* The command that starts a run in an interpreter. */
void code_language_run(enum code_language language, const struct code_run *r, struct buf *out);

/* ---- code_message.c: messages out of the bytes that an interpreter writes for us ---- */

enum code_message_state {
	CODE_MESSAGE_SEARCH, /* for the key that begins one */
	CODE_MESSAGE_HEAD,
	CODE_MESSAGE_BODY,
	CODE_MESSAGE_SKIP,    /* the body of a message that there is no room for */
	CODE_MESSAGE_WHOLE,   /* until the next bytes */
	CODE_MESSAGE_NONSENSE /* from here on nothing is understood */
};

struct code_message {
	enum code_message_state state;
	size_t matched; /* of the key and what stands around it */
	char head[512];
	size_t head_len;
	char type[16];
	size_t field_count;
	struct code_field fields[CODE_FIELDS_MAX]; /* data is set with the whole */
	size_t total;
	size_t skipped;
	struct buf body;
	size_t *charged; /* all bodies of this server together */
};

/*
 * Takes bytes until a message is whole or they end; returns how many. `left_out` is set when
 * there was no room for one.
 */
size_t code_message_feed(
	struct code_message *m, const char *key, const char *data, size_t len, bool *left_out);
void code_message_reset(struct code_message *m);

/* ---- contexts, interpreters, runs ---- */

enum code_interpreter_state {
	CODE_INTERPRETER_NONE,
	CODE_INTERPRETER_STARTING, /* until it has said that it is ready */
	CODE_INTERPRETER_IDLE,
	CODE_INTERPRETER_BUSY,  /* with the first run, or a run that was given up */
	CODE_INTERPRETER_ENDING /* killed, and not dead yet */
};

/* A callback that waits for the interpreter to be ready. */
struct code_waiter {
	struct code_waiter *next;
	void (*done)(void *arg, const struct error *e);
	void *arg;
};

struct code_context {
	struct sandbox *sandbox;
	char id[ID_SIZE];
	enum code_language language;
	char *cwd;      /* "": where the sandbox's commands begin */
	char *user;     /* "": the sandbox's */
	char *seen_cwd; /* where the interpreter said that it is at its start; "" before */
	char version[32];
	bool is_default;
	bool is_made; /* until then no other caller sees it */
	int64_t created_ms;
	struct code_context *prev, *next;

	enum code_interpreter_state state;
	struct execution *execution;
	struct execution_watcher holder; /* stands at the end of the last whole packet */
	struct execution_watcher reader;
	char key[CODE_KEY_LEN + 1];
	struct buf commands; /* not all written yet */
	size_t commands_sent;
	struct buf in; /* read, and not looked at from `at` on */
	size_t at;
	unsigned channel;
	size_t packet_left;
	struct code_message message;
	bool interrupting; /* until the minder has said that the signal is out */
	bool asked;        /* to answer, because we do not know what it does */
	bool asked_out;
	int64_t interrupt_at_ms; /* once more */
	int64_t kill_at_ms;      /* if it has not come back from an interrupt, or begun */
	int64_t count;           /* of its runs */
	bool died;               /* since the last run, unasked */
	char last_words[160], obituary[160];
	bool restarting;
	struct code_waiter *waiters;
	struct code_run *runs; /* the first is under way when the interpreter is busy with it */
	bool abandoned;        /* the interpreter is busy with a run that was cancelled */
};

struct code_run {
	struct code_context *context; /* NULL once that is gone */
	struct buf code;
	struct buf env; /* NAME=VALUE strings, each with its NUL */
	int64_t timeout_ms, deadline_ms;
	bool began;
	bool count_told;
	bool ended;
	bool lost;
	const char
		*error_name; /* of how it ended, when the interpreter did not say; NULL: it did */
	char error_value[200];
	bool error_told;
	void (*changed)(void *arg);
	void *arg;
	struct code_run *prev, *next;
};

/* Returns the directory that the context's interpreter began in, or will. */
const char *code_context_cwd(const struct code_context *c);

/* ---- code_interpreter.c ---- */

/* Starts the interpreter. When it is ready or refused, the waiters are told and runs begin. */
int code_interpreter_start(struct code_context *c, struct error *e);
void code_interpreter_kill(struct code_context *c);
/* Kills the interpreter; `reason` is told to its run. */
void code_interpreter_fail(struct code_context *c, const char *reason);
void code_interpreter_interrupt(struct code_context *c);
/* To it, as there is room. */
void code_interpreter_tell(struct code_context *c);
/* To those who wait for it to be ready. */
void code_interpreter_answer(struct code_context *c, const struct error *e);
/* Forgets the interpreter, in any state. */
void code_interpreter_detach(struct code_context *c);
/* Sets the timer for the earliest deadline. */
void code_watch_time(struct box *b);
/* The sandbox goes on, and with it the time of its interpreters. */
void code_awake(struct sandbox *s);

/* ---- code_stream.c ---- */

/* Reads what there is into memory; false: nothing. */
bool code_stream_fetch(struct code_context *c);
/* The next event of the run under way; false: none yet. */
bool code_stream_next(struct code_context *c, struct code_event *ret);
/* Returns whether a run takes what comes. */
bool code_stream_is_wanted(const struct code_context *c);
/* Reads and discards the output of a cancelled run until it has ended. */
void code_stream_drain(struct code_context *c);
void code_stream_forget(struct code_context *c);

/* ---- code_run.c ---- */

/* Begins the first run, if the interpreter is idle or can be started. */
void code_run_begin(struct code_context *c);
/* The interpreter has said that it is done, or is gone. */
void code_run_finish(struct code_context *c);
void code_run_fail(struct code_run *r, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Ends all runs, because the sandbox or the context goes. */
void code_run_lose_all(struct code_context *c);

/* ---- code_context.c, code_interpreter.c: what happens to their sandbox ---- */

/* From the store, at start. */
int code_load(struct box *b);
/* Adopts an interpreter that init has kept from an earlier front. */
void code_interpreter_adopt(struct execution *x);
extern const struct sandbox_part code_part;
