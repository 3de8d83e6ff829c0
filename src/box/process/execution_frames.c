/*
 * Frames of init about an execution. Every frame is hostile: offsets are checked against what was
 * sent, and an invalid one ends the sandbox.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "box/process/execution_core.h"
#include "box/sandbox/failure.h"
#include "box/sandbox/object.h"

/*
 * Fails an execution that never ran: a missing user, directory or resource is the caller's error
 * ...
 */
static void execution_frames_refuse(struct execution *x, int stage, int error)
{
	struct error *e = &x->refusal;
	if (stage == FRAME_STAGE_USER)
		error_set_field(
			e, ERROR_INVALID_FIELD, "user", "there is no such user in the sandbox");
	else if (stage == FRAME_STAGE_CWD)
		error_set_field(e, ERROR_INVALID_FIELD, x->own_cwd ? "cwd" : "workdir",
			"the working directory cannot be entered: %s", strerror(error));
	else
		error_set(e, ERROR_RESOURCE_EXHAUSTED,
			"the sandbox has no room for another process: %s", strerror(error));
	x->exit.code = 126;
	execution_end(x, EXECUTION_FAILED);
}

/* ... and a program that is missing is a result, as a shell would give it. */
static void report_no_program(struct execution *x, int error)
{
	char text[512];
	int n = snprintf(text, sizeof text, "bunker: cannot run '%.300s': %s\n",
		x->command.len ? x->command.data : "", strerror(error));
	output_append(&x->outputs[FRAME_STDERR], (uint64_t)x->box->config.output_limit, false, 0,
		text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
	x->no_program = true;
	x->exit.code = error == ENOENT || error == ENOTDIR ? 127 : 126;
	execution_end(x, EXECUTION_FAILED);
}

static void handle_started(struct execution *x, const struct frame_started *started)
{
	if (x->status != EXECUTION_QUEUED)
		return;
	if (started->stage == FRAME_STAGE_EXEC) {
		report_no_program(x, started->error);
	} else if (started->stage > FRAME_STAGE_NONE && started->stage < FRAME_STAGE_EXEC) {
		execution_frames_refuse(x, started->stage, started->error);
	} else {
		x->pid = started->pid;
		x->in_init = true;
		x->status = EXECUTION_RUNNING;
		if (x->kind != EXECUTION_COMMAND)
			execution_record(x);
		execution_notify(x);
	}
}

static int handle_output(struct execution *x, const struct frame_header *h, const char *payload)
{
	struct output *o = &x->outputs[h->stream];
	uint64_t end = h->offset + h->size;
	if (h->offset > o->end || end > x->acked[h->stream] + FRAME_RING ||
		(x->exited && end > x->exit.end[h->stream]))
		return -EPROTO;
	if (execution_is_drained(x))
		return 0;
	bool paced = x->terminal || execution_is_paced(x, h->stream);
	int r = output_append(o, execution_output_limit(x), paced, h->offset, payload, h->size);
	if (r < 0)
		return r;
	execution_acknowledge(x, h->stream);
	execution_notify(x);
	execution_output_came(x);
	return 0;
}

static int execution_frames_handle_status(
	struct execution *x, const struct frame_header *h, const char *payload)
{
	struct frame_status status;
	const char *cwd;
	int r = frame_decode_status(payload, h->size, &status, &cwd);
	if (r < 0)
		return r;
	execution_inspected(x, &(struct execution_usage){
				       .cpu_us = (int64_t)(status.cpu_us & INT64_MAX),
				       .memory = (int64_t)(status.memory & INT64_MAX),
				       .peak = (int64_t)(status.peak & INT64_MAX),
				       .processes = status.processes,
				       .state = status.state & 0x7f,
				       .cwd = cwd,
			       });
	return 0;
}

/* Returns whether the numbers of an exit are plausible: the front calculates with them. */
static bool makes_sense(const struct execution *x, const struct frame_exit *exit)
{
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		if (exit->end[i] < x->outputs[i].end || exit->end[i] > INT64_MAX)
			return false;
	return exit->code >= -1 && exit->code <= 255 && exit->signal >= 0 && exit->signal < NSIG &&
	       exit->cpu_us <= INT64_MAX && exit->duration_us <= INT64_MAX;
}

static int execution_frames_dispatch(
	struct execution *x, const struct frame_header *h, const char *payload)
{
	struct frame_started started;
	struct frame_exit exit;
	int r = 0;
	switch (h->type) {
	case FRAME_STARTED:
		r = frame_payload(h, payload, &started, sizeof started);
		if (r == 0)
			handle_started(x, &started);
		return r;
	case FRAME_OUTPUT:
		return handle_output(x, h, payload);
	case FRAME_STDIN_ACK:
		return execution_input_taken(x, h->offset);
	case FRAME_STDIN_CLOSED:
		x->input_deaf = true;
		execution_notify(x);
		return 0;
	case FRAME_STATUS:
		return execution_frames_handle_status(x, h, payload);
	case FRAME_EXIT:
		r = frame_payload(h, payload, &exit, sizeof exit);
		if (r == 0 && !makes_sense(x, &exit))
			r = -EPROTO;
		if (r == 0 && x->status == EXECUTION_RUNNING && !x->exited)
			execution_handle_exit(x, &exit);
		return r;
	default:
		return -EPROTO;
	}
}

void execution_handle_frame(struct sandbox *s, const struct frame_header *h, const char *payload)
{
	struct execution *x = execution_find_tag(s, h->tag);
	if (x && execution_frames_dispatch(x, h, payload) < 0)
		sandbox_fail(s, "its init sent a frame that makes no sense");
}

/* ---- after a restart ---- */

/*
 * The rest of a stdin that was given whole went with its request: half of it must not look like
 * all, so the process is killed. One that is written piece by piece goes on where init says it
 * stands.
 */
static void adopt_input(struct execution *x, const struct frame_process *r)
{
	bool resumes = (r->start_flags & (FRAME_START_OPEN_STDIN | FRAME_START_TERMINAL)) != 0;
	bool unfinished = r->flags & FRAME_PROCESS_INPUT_OPEN;
	x->input_sent = x->input_end = r->input_received;
	x->input_taken = r->input_taken <= r->input_received ? r->input_taken : r->input_received;
	x->input_open = resumes && unfinished;
	x->input_closed = !x->input_open;
	if (!resumes && unfinished)
		execution_send(x, FRAME_KILL, 0, 0, NULL, 0);
}

static void adopt_outputs(struct execution *x, const struct frame_process *r)
{
	execution_place_outputs(x);
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++) {
		output_restore(&x->outputs[i]);
		output_charge_restored(&x->outputs[i]);
		x->acked[i] = r->acked[i];
		/* Init starts again at what it was told last. */
		if (x->outputs[i].end < r->acked[i])
			x->outputs[i].end = r->acked[i];
	}
}

/* An interpreter's end is told when its sandbox is awake again, by the EXIT behind READY. */
static void adopt_exit(struct execution *x, const struct frame_process *r)
{
	if (!(r->flags & FRAME_PROCESS_EXITED) || x->interpreter)
		return;
	if (makes_sense(x, &r->exit))
		execution_handle_exit(x, &r->exit);
	else
		sandbox_fail(x->sandbox, "its init sent a record that makes no sense");
}

int execution_adopt(struct sandbox *s, uint64_t tag, const struct process_frame *record)
{
	const struct frame_process *r = &record->fixed;
	int64_t now = clock_wall_ms();
	char id[ID_SIZE];
	memcpy(id, r->execution, ID_SIZE);
	id[ID_LEN] = '\0';
	if (!id_is_valid(id) || tag != execution_sign(s, id))
		return -EPROTO;
	/* The connection is another, the front is the same. */
	if (execution_find_tag(s, tag) || execution_find(s->box, NULL, id))
		return 0;
	struct execution *x = execution_new(s, r->start_flags & FRAME_START_INTERPRETER);
	memcpy(x->id, id, ID_SIZE);
	x->tag = tag;
	x->pid = r->pid;
	x->in_init = x->recorded = true;
	x->started_ms = r->started_ms > 0 && r->started_ms < now ? r->started_ms : now;
	x->began_us -= (now - x->started_ms) * 1000;
	x->timeout_ms = r->timeout_ms < INT32_MAX ? (int64_t)r->timeout_ms : 0;
	x->status = EXECUTION_RUNNING;
	uint32_t kind = r->kind & ~(KIND_ATTENDED | KIND_UNLISTED);
	x->kind = kind < EXECUTION_KIND_COUNT ? (enum execution_kind)kind : EXECUTION_COMMAND;
	x->attended = r->kind & KIND_ATTENDED;
	x->unlisted |= (r->kind & KIND_UNLISTED) != 0;
	x->terminal = r->start_flags & FRAME_START_TERMINAL;
	x->user = sandbox_copy_string(record->user);
	x->cwd = sandbox_copy_string(record->cwd);
	x->name = sandbox_copy_string(record->name);
	buf_append(&x->command, record->command, record->command_len);
	adopt_outputs(x, r);
	execution_charge_record(x);
	adopt_input(x, r);
	execution_flush(x);
	if (x->interpreter) {
		sandbox_parts_interpreter_found(s, x);
	} else if (!x->unlisted) {
		execution_index(x);
		s->executions++; /* the store counts it when it ends */
		x->settling = r->flags & FRAME_PROCESS_EXITED;
		s->init.settling += x->settling;
	}
	adopt_exit(x, r);
	return 0;
}
