/* Executions and their output, as the rooms of box see them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "base/id.h"
#include "box/process/execution.h"
#include "box/process/kept.h"
#include "box/process/spool.h"
#include "box/sandbox/object.h"
#include "store/store.h"
#include "wire/frame.h"

/* ---- output.c: one stream of one execution ---- */

#define OUTPUT_IN_MEMORY (32u * 1024)
#define OUTPUT_RECENT    (128u * 1024)

struct output {
	struct buf memory; /* the first bytes, while they are few: init holds them, too */
	bool spooled;      /* afterwards: all of it is in the file */
	struct spool_file file;
	struct kept_account *account; /* the tenant whose disk it takes; NULL is not counted */
	uint64_t charged;             /* to that, until the row is */
	uint64_t stored;              /* bytes kept, from 0 */
	uint64_t end;                 /* bytes seen */
	struct buf tail; /* [tail_start, end), beyond what is kept, for paced watchers */
	uint64_t tail_start;
	bool full;       /* nothing more is kept */
	uint64_t recent; /* this much of the end is held beyond the limit, for who comes later */
};

/* Without a spool nothing of it goes to disk. */
void output_init(struct output *o, struct spool *spool, struct kept_account *account,
	const char *execution, unsigned stream);
void output_finish(struct output *o);
void output_copy(const struct output *o, struct output_copy *ret);
/* Continues with what an earlier front left on disk; o is as output_init left it. */
void output_restore(struct output *o);
/* Charges the restored bytes of an output that goes on. */
void output_charge_restored(struct output *o);
/* Takes bytes [offset, offset+len); bytes that were seen are skipped. -EPROTO: there is a hole. */
int output_append(struct output *o, uint64_t limit, bool keep_tail, uint64_t offset,
	const char *data, size_t len);
/* Returns whether all that will ever be kept of a stream that ends at `end` is here. */
bool output_is_settled(const struct output *o, uint64_t limit, uint64_t end);
/* Returns up to where init may forget, when the slowest paced watcher stands at `slowest`. */
uint64_t output_release(struct output *o, uint64_t slowest);
/* Up to max bytes from *position, which moves; -errno on failure. */
int output_read(struct output *o, uint64_t *position, size_t max, struct buf *out);

/* ---- execution.c ---- */

/* Init keeps one word for us: the kind, and these. */
#define KIND_ATTENDED (1u << 8)
#define KIND_UNLISTED (1u << 9)

struct execution {
	struct box *box;
	struct sandbox *sandbox; /* NULL once the sandbox is gone */
	char id[ID_SIZE];
	char sandbox_id[ID_SIZE];
	char *tenant, *user, *cwd, *name;
	uint64_t tag;
	enum execution_kind kind;
	bool attended;
	bool terminal;
	struct buf command;
	struct buf env; /* its own, in memory only: it may hold secrets */
	struct output outputs[EXECUTION_STREAMS];
	struct buf input;   /* given at the start, not all sent yet */
	uint64_t input_end; /* bytes that the caller has given */
	uint64_t input_sent, input_taken;
	bool input_open;   /* more may be given */
	bool input_closed; /* STDIN_END is out, or there is no stdin */
	bool input_deaf;   /* the process reads no more */
	enum execution_status status;
	int32_t pid;
	struct frame_exit exit;
	bool exited;    /* init has told `exit`; output may still come */
	bool concluded; /* ... and the result is being made of it */
	bool cut;       /* what was still to come of its output went with its sandbox */
	bool oom_killed;
	bool own_cwd;     /* it asked for its working directory itself */
	bool interpreter; /* of a code context: unlisted, and nothing of its output is kept */
	bool indexed;     /* known by its id */
	bool no_program;
	bool settling; /* init knew its end when we found it; its sandbox waits for that */
	bool recorded; /* the store knows that it has begun */
	bool in_init;  /* init remembers it, and must be told to forget */
	bool unlisted; /* of ours, see execution_spec */
	bool committed;
	bool unstorable;    /* the store refused it; it stays in memory, and with init */
	uint64_t charged;   /* for its short row, until that is replaced */
	uint64_t row_bytes; /* what the row counts for that was given to the store */
	int64_t started_ms;
	int64_t began_us; /* the same, in monotonic time */
	int64_t timeout_ms;
	uint64_t acked[EXECUTION_STREAMS];
	uint64_t seen[EXECUTION_STREAMS]; /* how far any paced watcher has read */
	struct error refusal;
	struct execution_watcher *watchers;
	struct execution_inspection *inspections;
	struct execution *prev, *next; /* of the sandbox */
	UT_hash_handle by_id;
};

struct execution *execution_new(struct sandbox *s, bool interpreter);
/* Counts running executions of the sandbox: +1 at the beginning, -1 at the end. */
void execution_count(struct execution *x, int change);
/* Decides where output is kept: called when the id is known, and whether it is listed. */
void execution_place_outputs(struct execution *x);
/* Makes it known by its id. */
void execution_index(struct execution *x);
void execution_free_if_unused(struct execution *x);
/* Bytes that the process has written to a stream, as far as is known. */
uint64_t execution_length(const struct execution *x, unsigned stream);
/* Returns how many bytes of each stream are kept. */
uint64_t execution_output_limit(const struct execution *x);
/* No byte of its output is still with init. */
bool execution_is_drained(const struct execution *x);
/* The tag of a process in frames. Only a front can compute it. */
uint64_t execution_sign(const struct sandbox *s, const char id[ID_SIZE]);
struct execution *execution_find_tag(const struct sandbox *s, uint64_t tag);
/* To its init, if there is one; sent with the next flush. */
void execution_send(struct execution *x, enum frame_type type, unsigned stream, uint64_t offset,
	const void *data, size_t len);
void execution_flush(struct execution *x);

/* ---- execution_start.c ---- */

/* Starts an execution that runs on without watchers and without the front. */
int execution_start_interpreter(struct sandbox *s, const struct execution_spec *spec,
	struct execution **ret, struct error *e);

/* ---- execution_input.c ---- */

/* As much of what was given as the window allows. */
void execution_input_push(struct execution *x);
int execution_input_taken(struct execution *x, uint64_t offset);

/* ---- execution_watch.c ---- */

void execution_notify(struct execution *x);
bool execution_is_paced(const struct execution *x, unsigned stream);
/* Let init forget what is safe with us. */
void execution_acknowledge(struct execution *x, unsigned stream);

/* ---- execution_control.c ---- */

void execution_inspected(struct execution *x, const struct execution_usage *usage);

/* ---- execution_end.c ---- */

void execution_end(struct execution *x, enum execution_status status);
void execution_handle_exit(struct execution *x, const struct frame_exit *exit);
/* Output has come: it may have been what its end, or its being forgotten, waited for. */
void execution_output_came(struct execution *x);
/* The sandbox ends: so do its executions. */
void execution_end_all(struct sandbox *s, enum execution_status status);
/* The sandbox cannot be woken for them: what has not been sent yet is refused. */
void execution_refuse_queued(struct sandbox *s, const struct error *e);
/* We end, and they go on: only our memory of them goes. */
void execution_abandon_all(struct sandbox *s);
/* Retries rows that the store refused. */
void execution_retry_ends(struct box *b);
/* Sandboxes whose init owes an answer for too long are given up. */
void execution_check_overdue(struct box *b);

/* ---- execution_record.c, execution_load.c ---- */

void execution_store(struct execution *x, store_added_fn *stored, void *arg);
/* Replaces earlier charges by that of the stored row; is_new: there was no row yet. */
void execution_charge_row(struct execution *x, bool is_new);
/* Charges the short row of a running execution, which is in the store. */
void execution_charge_record(struct execution *x);
/* Makes an ended execution from its row; it is in no table, and is freed with its last watcher. */
struct execution *execution_revive(struct box *b, const struct execution_row *row);
/* At start: what was recorded, and what of it is lost, of sandboxes whose init has been heard: one
 * of them, or all (NULL). */
int execution_load_recorded(struct box *b);
void execution_settle_recorded(struct box *b, const char *sandbox);
/*
 * Ends the recorded executions of a sandbox that is ended before its init has answered: they are
 * not lost.
 */
void execution_forget_recorded(const struct sandbox *s);
/* We end before that. */
void execution_drop_recorded(struct box *b);

/* ---- execution_frames.c ---- */

/* A process that init still has from an earlier front; -EPROTO: it was never given that one. */
int execution_adopt(struct sandbox *s, uint64_t tag, const struct process_frame *record);
void execution_handle_frame(struct sandbox *s, const struct frame_header *h, const char *payload);

/* ---- part.c ---- */

extern const struct sandbox_part process_part;
