/*
 * Operations: what any API can ask of a sandbox, once for all of them.
 *
 * An operation is begun by id and value, never by pointer: `struct op_call` says who asks, for
 * which sandbox or volume, and who is told; the request's struct says what. The sandbox may be on
 * this machine or, later, on another one: nothing in this header tells the difference.
 *
 * Beginning never fails. Whatever is wrong (no such sandbox, not yours, refused by a hook, no such
 * user inside) is told as OP_FAILED. Nothing is told before the first op_resume.
 *
 * Events come while the caller wants them. Its function answers each with OP_GO_ON, with OP_PAUSE
 * (this one was taken; nothing more until op_resume) or with OP_STOP (the caller leaves). What an
 * event points at lives for the time of the call; an OP_DATA's or OP_OUTPUT's bytes may be taken.
 * The last event is OP_DONE or OP_FAILED, exactly once; with it, or with OP_STOP, the handle is
 * gone.
 *
 * A caller that goes away says op_leave, at any time but inside an event, and hears nothing more.
 * What then becomes of the operation is a property of the operation (op_core.h, `outlives_caller`):
 * a command runs on, a pause is carried through, a read or a half-sent write ends. What has not
 * begun yet (its sandbox still wakes, an approval is outstanding) ends in any case. op_cancel ends
 * the operation itself.
 *
 * What a request points at is borrowed until the operation's first event, or until it is left. A
 * request with memory of its own hands it over in op_call.memory: it is freed as soon as the
 * operation has begun.
 */
#pragma once

#include <uv.h>

#include "base/scratch.h"
#include "model/build.h"
#include "model/event.h"
#include "model/checkpoint.h"
#include "model/disk.h"
#include "model/code.h"
#include "model/execution.h"
#include "model/file.h"
#include "model/key.h"
#include "model/sandbox.h"
#include "model/secret.h"
#include "model/snapshot.h"
#include "model/usage.h"
#include "model/volume.h"

struct op;
struct ops;

/* ---- events ---- */

enum op_event_kind {
	OP_STARTED,   /* execution: it runs */
	OP_OUTPUT,    /* output */
	OP_EXITED,    /* execution, lost */
	OP_EXECUTION, /* execution, as it is now; usage, if it was asked for and is known */
	OP_CONTENT,   /* content: as many bytes follow as OP_DATA */
	OP_DATA,      /* data */
	OP_ENTRY,     /* entry; then its attributes, if they were asked for */
	OP_ATTRIBUTE, /* attribute */
	OP_MATCH,     /* match */
	OP_CHANGE,    /* change */
	OP_READY,     /* the watch is in place: every later change is told */
	OP_NOTICE,    /* notice */
	OP_ROW,       /* one of a list: what the operation's header says */
	OP_CODE,      /* code: what a run of code tells, to its last event */
	OP_SOCKET,    /* socket: connected, and the caller's */
	OP_REFUSED,   /* error: of the item that was put last; the operation goes on */
	OP_ROOM,      /* op_put takes more again */
	OP_IDLE,      /* that was all for now: a collecting caller may send */
	OP_DONE,      /* result, of file work; what was made, changed or asked for, of the others */
	OP_FAILED     /* error, reason */
};

/* Why an operation failed, where dialects tell it apart from other errors of the same code. */
enum op_reason {
	OP_ERROR,
	OP_NO_SANDBOX,    /* there is none of this id, or it belongs to another tenant */
	OP_SANDBOX_ENDED, /* there was; if op_call.asks_for_ended, or while it was worked on */
	OP_NO_SNAPSHOT,   /* the same of a snapshot */
	OP_NO_VOLUME,     /* and of a volume */
	OP_BUSY,          /* an exclusive command finds another one running */
	OP_NO_EXECUTION,  /* there is none of this name */
	OP_NO_CONTEXT,    /* there is no such context of code */
	OP_NO_PROGRAM,    /* the command's program does not exist */
	OP_DEADLINE,      /* the caller's time is over; what outlives its caller goes on */
	OP_DENIED,        /* the caller has shown nothing that opens it */
	OP_BROKEN         /* output that was kept cannot be read any more */
};

struct op_output {
	unsigned stream;
	uint64_t offset;  /* of the first byte */
	uint64_t missing; /* so many before it were not kept */
	struct buf *bytes;
};

struct op_event {
	enum op_event_kind kind;
	union {
		const struct execution_view *execution;
		struct op_output output;
		struct {
			uint64_t length, offset; /* RECORD_UNKNOWN: not known beforehand */
		} content;
		struct buf *data;
		const struct file_entry *entry;
		const struct file_attribute *attribute;
		const struct file_match *match;
		const struct file_change *change;
		const struct file_notice *notice;
		const struct event_view *happened;
		const char *id; /* of what was made */
		const struct usage_report *used;
		struct {
			const struct tenant_amounts *limit, *used;
		} quota;
		const struct box_counters *counters;
		const struct sandbox_view *sandbox; /* NULL: it is gone meanwhile */
		const struct snapshot_record *snapshot;
		const struct checkpoint_view *checkpoint;
		const struct volume_view *volume;
		const struct key_record *key;
		const struct secret_record *secret;
		const struct port_grant *grant;
		const struct disk_change *disk_change;
		const struct disk_usage *disk;
		const struct template_view *template;
		const struct build_view *build;
		const struct build_log_entry *log;
		const struct code_context_view *context;
		const struct code_event *code;
		struct {
			uv_tcp_t *stream; /* of the heap, and read by nobody */
			bool spare;       /* it has carried requests, and may be closed by now */
			const char
				*host; /* what Host is to say there; NULL: as the client has it */
		} socket;
		const struct error *error;
		const void *record; /* whichever of these it is */
	};
	struct file_result result; /* also of OP_FAILED: how far it came */
	enum op_reason reason;
	const struct execution_usage *usage; /* OP_EXECUTION; NULL: not known */
	int64_t frozen_us;                   /* OP_DONE: how long the sandbox stood still for it */
	int64_t total;  /* OP_DONE of a list: how many there are, told or not */
	int64_t awake;  /* of a list that is announced: the tenant's sandboxes that are awake */
	bool more;      /* OP_DONE of a list: some behind the last one were not told */
	int64_t end_ms; /* of a list that is announced: time and id of its last one */
	const char *end_id;
	bool truncated; /* OP_DONE of a comparison: something was too deep to be looked at */
	bool woke;      /* OP_STARTED, OP_DONE: the sandbox slept before */
	bool lost;      /* OP_EXITED: its sandbox was ended or put to sleep under it */
};

enum op_verdict {
	OP_STOP = -1,
	OP_GO_ON,
	OP_PAUSE
};

typedef enum op_verdict op_event_fn(void *arg, const struct op_event *event);

/* ---- calls ---- */

struct op_call {
	struct ops *ops;
	const char *api;     /* "native", "e2b": for audit */
	const char *request; /* the request's id: for audit and traces */
	/*
	 * The tenant that must own it. NULL: the caller has shown a token of this very sandbox or
	 * volume.
	 */
	const char *tenant;
	const char *sandbox, *volume; /* ids, one of them */
	int64_t deadline_ms;          /* how long the caller listens; 0: for ever */
	bool finds_gone;              /* the sandbox may be gone: what it left is asked for */
	bool wants_usable;            /* a sandbox that is ending counts as missing */
	const char *wants_metadata;   /* a key: without it in its metadata, the same; or NULL */
	bool asks_for_ended;   /* tell a sandbox that has ended from one that never existed */
	bool takes_ended;      /* accept a sandbox that has ended: its records are asked for */
	struct scratch memory; /* taken */
	op_event_fn *event;
	void *arg;
};

/*
 * Begins an operation that does nothing but fail with *e, for requests that could not be decoded.
 * A sandbox that is not there is told first: it is 404 whatever the body says.
 */
struct op *op_refuse(const struct op_call *call, const struct error *e);

/* Tells on: now, and whenever there is something, until the caller says OP_PAUSE. */
void op_resume(struct op *op);
void op_leave(struct op *op);
void op_cancel(struct op *op);

/* ---- input ---- */

enum op_item_kind {
	OP_ITEM_FILE,      /* target: a file begins */
	OP_ITEM_LENGTH,    /* length: so many bytes follow; else each piece tells its own */
	OP_ITEM_DATA,      /* bytes */
	OP_ITEM_ATTRIBUTE, /* attribute; value NULL removes it */
	OP_ITEM_FILE_END,  /* the file is complete */
	OP_ITEM_PROCESS,   /* process: whose stdin the data is for */
	OP_ITEM_SIGNAL,    /* signal: for the process */
	OP_ITEM_RESIZE,    /* size: of its terminal */
	OP_ITEM_END        /* the input is complete */
};

struct op_item {
	enum op_item_kind kind;
	union {
		struct file_target target;
		uint64_t length;
		struct {
			const char *data;
			size_t len;
		} bytes;
		struct file_attribute attribute;
		struct execution_ref process;
		struct {
			int number;
			bool tree; /* goes to everything that the process started, too */
		} signal;
		struct {
			unsigned rows, columns;
		} size;
	};
};

/* Copies. Beyond op_room it is taken, too, and kept. Nothing happens if the operation has failed.
 */
void op_put(struct op *op, const struct op_item *item);
size_t op_room(const struct op *op);
/* A whole file. */
void op_put_file(struct op *op, const struct file_target *target, const char *content, size_t len);

/* ---- where they are carried out ---- */

/* One operation as audit, approvals and traces see it. */
struct op_summary {
	const char *name; /* "files.read", "exec" */
	bool changes;     /* something in the sandbox or the sandbox itself */
	const char *api, *request, *tenant, *sandbox, *volume;
	int64_t began_us;
};

struct op_hook {
	/* Called before anything happens; negative: refused, and *e says why. */
	int (*admit)(void *arg, const struct op_summary *summary, struct error *e);
	/* e: why it failed, or NULL; left: it was ended by its caller's going. */
	void (*ended)(
		void *arg, const struct op_summary *summary, const struct error *e, bool left);
	void *arg;
};

struct box;
struct keys;
struct op_guard;

struct ops {
	struct box *box;
	struct keys *keys;
	uv_loop_t *loop;
	const struct op_hook *hooks;
	size_t hook_count;
	unsigned inventories;    /* under way */
	struct op_guard *guards; /* of commands that end when no client attends them */
	bool stopping;           /* callers that leave now leave because of us */
};

/*
 * Called when the box has found what runs in its sandboxes: clients that attended commands have a
 * minute to come back.
 */
void ops_start(struct ops *ops);
/* From now on callers leave because of us, and nothing is cancelled for it. */
void ops_stop(struct ops *ops);
