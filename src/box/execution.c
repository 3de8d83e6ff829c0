/*
 * One command's life as the front sees it: started by one frame, ended by one, recorded behind
 * both.
 *
 * Its end is told to the watchers at once and written to the store; only after that commit is init
 * told to forget it. Whatever dies in between, the result is still with init or already in the
 * store.
 */
#include "box/core.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

/* How much later than it should init may answer. */
#define OVERDUE_MS 30000

static const char *const status_names[EXECUTION_STATUS_COUNT] = {
	"queued", "running", "completed", "failed", "timeout", "cancelled"};

const char *execution_status_name(enum execution_status status)
{
	return status_names[status];
}

enum execution_status execution_status_of(const char *name)
{
	for (int i = 0; i < EXECUTION_STATUS_COUNT; i++)
		if (strcmp(status_names[i], name) == 0)
			return (enum execution_status)i;
	return EXECUTION_FAILED;
}

bool execution_has_started(const struct execution *x)
{
	return x->status != EXECUTION_QUEUED;
}

bool execution_has_ended(const struct execution *x)
{
	return x->status > EXECUTION_RUNNING;
}

const struct error *execution_refusal(const struct execution *x)
{
	return x->refusal.code == ERROR_NONE ? NULL : &x->refusal;
}

/* ---- memory ---- */

static struct execution *execution_new(struct sandbox *s, bool internal)
{
	struct execution *x = calloc(1, sizeof *x);
	if (!x || !(x->tenant = strdup(s->tenant)))
		abort();
	x->box = s->box;
	x->sandbox = s;
	x->internal = internal;
	memcpy(x->sandbox_id, s->id, ID_SIZE);
	x->started_ms = clock_wall_ms();
	for (int i = 0; i < EXECUTION_STREAMS; i++)
		output_init(&x->outputs[i]);
	DL_APPEND(s->live, x);
	sandbox_execution_began(s);
	return x;
}

static void execution_index(struct execution *x)
{
	HASH_ADD(by_id, x->box->executions, id, ID_LEN, x);
	x->box->counters.executions_running++;
}

static void execution_free_if_unused(struct execution *x)
{
	if (x->watchers || !execution_has_ended(x) || !x->committed)
		return;
	if (!x->internal)
		HASH_DELETE(by_id, x->box->executions, x);
	for (int i = 0; i < EXECUTION_STREAMS; i++)
		output_finish(&x->outputs[i]);
	buf_finish(&x->input);
	buf_finish(&x->command);
	free(x->tenant);
	free(x);
}

struct execution *execution_find(struct box *b, const char *tenant, const char *id)
{
	struct execution *x = NULL;
	if (!id_is_valid(id))
		return NULL;
	HASH_FIND(by_id, b->executions, id, ID_LEN, x);
	return x && strcmp(x->tenant, tenant) == 0 ? x : NULL;
}

/* ---- frames out ---- */

static void send_frame(struct execution *x, enum frame_type type, unsigned stream, uint64_t offset,
	const void *data, size_t len)
{
	if (x->sandbox && x->sandbox->link)
		frame_append(init_link_buffer(x->sandbox->link), type, stream, x->tag, offset, data,
			len);
}

static void flush(struct execution *x)
{
	if (x->sandbox && x->sandbox->link)
		init_link_flush(x->sandbox->link);
}

/* As much of stdin as the window allows. */
static void send_input(struct execution *x, uint64_t taken)
{
	uint64_t end = x->input_start + x->input.len;
	if (taken > x->input_sent || end == UINT64_MAX)
		return;
	while (x->input_sent < end && x->input_sent - taken < FRAME_RING) {
		size_t len = (size_t)(end - x->input_sent);
		size_t window = (size_t)(FRAME_RING - (x->input_sent - taken));
		len = len < window ? len : window;
		len = len < FRAME_MAX_DATA ? len : FRAME_MAX_DATA;
		send_frame(x, FRAME_STDIN, 0, x->input_sent,
			x->input.data + (x->input_sent - x->input_start), len);
		x->input_sent += len;
	}
	if (x->input_sent == end) {
		send_frame(x, FRAME_STDIN_END, 0, 0, NULL, 0);
		x->input_start = UINT64_MAX; /* nothing more to send */
		buf_finish(&x->input);
	}
	flush(x);
}

/* ---- starting ---- */

static bool env_names(const char *const *env, const char *entry)
{
	size_t len = strcspn(entry, "=") + 1;
	for (; env && *env; env++)
		if (strncmp(*env, entry, len) == 0)
			return true;
	return false;
}

/* The caller's variables, then those of the sandbox that they do not replace. Owned array. */
static const char **merge_env(const struct sandbox *s, const char *const *env)
{
	size_t count = 0, n = 0;
	for (size_t i = 0; env && env[i]; i++)
		count++;
	for (size_t i = 0; i < s->env.len; i++)
		count += s->env.data[i] == '\0';
	const char **merged = calloc(count + 1, sizeof *merged);
	if (!merged)
		abort();
	for (size_t i = 0; env && env[i]; i++)
		merged[n++] = env[i];
	for (size_t at = 0; at < s->env.len; at += strlen(s->env.data + at) + 1)
		if (!env_names(env, s->env.data + at))
			merged[n++] = s->env.data + at;
	return merged;
}

static int encode_start(struct execution *x, const struct execution_spec *spec, struct error *e)
{
	const struct sandbox *s = x->sandbox;
	autofree const char **envp = merge_env(s, spec->env);
	int64_t timeout = spec->timeout_ms ? spec->timeout_ms : x->internal ? 0 : s->execution_ms;
	struct start_request request = {
		.fixed = {.open_files = (uint32_t)s->resources.open_files,
			.timeout_ms = (uint64_t)timeout,
			.flags = (spec->input ? FRAME_START_STDIN : 0u) |
				 (x->internal ? FRAME_START_BUILTIN : 0u)},
		.user = spec->user ? spec->user : s->user,
		.cwd = spec->cwd ? spec->cwd : s->workdir,
		.argv = (const char **)(uintptr_t)spec->argv,
		.envp = envp,
	};
	x->timeout_ms = timeout;
	memcpy(request.fixed.execution, x->id, ID_SIZE);
	int r = frame_encode_start(init_link_buffer(s->link), x->tag, &request);
	if (r == -E2BIG)
		return error_set_field(e, ERROR_INVALID_FIELD, "command",
			"command and environment together are longer than %u bytes or %u entries",
			FRAME_MAX_PAYLOAD, FRAME_MAX_STRINGS);
	return r < 0 ? error_set_errno(e, r, "cannot start the command") : 0;
}

static void remember_command(struct execution *x, const char *const *argv)
{
	for (; *argv && x->command.len < FRAME_MAX_COMMAND; argv++)
		buf_append(&x->command, *argv, strlen(*argv) + 1);
}

static int check_startable(const struct sandbox *s, struct error *e)
{
	if (s->status == SANDBOX_FAILED)
		return error_set(e, ERROR_NOT_RUNNING, "the sandbox has failed: %s", s->failure);
	if (!s->link || s->status == SANDBOX_STOPPING)
		return error_set(e, ERROR_NOT_RUNNING, "the sandbox is not running");
	if (s->running >= s->box->config.executions_per_sandbox)
		return error_set(e, ERROR_QUOTA_EXCEEDED,
			"the sandbox runs %u commands already, the most that is allowed",
			s->running);
	return 0;
}

static void execution_discard(struct execution *x)
{
	DL_DELETE(x->sandbox->live, x);
	sandbox_execution_ended(x->sandbox);
	x->status = EXECUTION_FAILED;
	x->committed = x->internal = true;
	execution_free_if_unused(x);
}

int execution_start_internal(struct sandbox *s, const struct execution_spec *spec, bool internal,
	struct execution **ret, struct error *e)
{
	if (check_startable(s, e) < 0)
		return -1;
	struct execution *x = execution_new(s, internal);
	id_generate(x->id);
	if (getrandom(&x->tag, sizeof x->tag, 0) != (ssize_t)sizeof x->tag)
		abort();
	if (encode_start(x, spec, e) < 0) {
		execution_discard(x);
		return -1;
	}
	remember_command(x, spec->argv);
	x->own_cwd = spec->cwd != NULL;
	x->input_start = UINT64_MAX;
	if (spec->input) {
		x->input_start = 0;
		buf_append(&x->input, spec->input, spec->input_len);
		send_input(x, 0);
	}
	if (!internal) {
		execution_index(x);
		s->executions++;
		s->box->counters.executions_total++;
	}
	flush(x);
	*ret = x;
	return 0;
}

int execution_start(struct sandbox *s, const struct execution_spec *spec, struct execution **ret,
	struct error *e)
{
	return execution_start_internal(s, spec, false, ret, e);
}

/* ---- watching ---- */

static void notify(struct execution *x)
{
	struct execution_watcher *w, *next;
	DL_FOREACH_SAFE (x->watchers, w, next)
		w->changed(w->arg);
}

static uint64_t slowest_position(const struct execution *x, unsigned stream)
{
	uint64_t slowest = UINT64_MAX;
	const struct execution_watcher *w;
	DL_FOREACH (x->watchers, w)
		if (w->paced && w->position[stream] < slowest)
			slowest = w->position[stream];
	return slowest;
}

/* Let init forget what is safe with us. */
static void acknowledge(struct execution *x, unsigned stream)
{
	uint64_t offset = output_release(&x->outputs[stream], slowest_position(x, stream));
	if (offset <= x->acked[stream])
		return;
	x->acked[stream] = offset;
	send_frame(x, FRAME_ACK, stream, offset, NULL, 0);
	flush(x);
}

/* A stream that is open keeps its sandbox from being idle, also when the command has ended. */
static void count_reader(const struct execution *x, const struct execution_watcher *w, int change)
{
	struct sandbox *s = NULL;
	HASH_FIND(by_id, x->box->sandboxes, x->sandbox_id, ID_LEN, s);
	if (!s || !w->paced)
		return;
	s->readers += (unsigned)change;
	s->last_active_ms = clock_wall_ms();
	sandbox_check_idle(x->box);
}

void execution_watch(struct execution *x, struct execution_watcher *w)
{
	DL_APPEND(x->watchers, w);
	count_reader(x, w, 1);
}

void execution_unwatch(struct execution *x, struct execution_watcher *w)
{
	DL_DELETE(x->watchers, w);
	count_reader(x, w, -1);
	if (!execution_has_ended(x))
		for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
			acknowledge(x, i);
	execution_free_if_unused(x);
}

bool execution_read(struct execution *x, struct execution_watcher *w, unsigned stream, size_t max,
	struct buf *out)
{
	int r = output_read(&x->outputs[stream], &w->position[stream], max, out);
	if (!execution_has_ended(x))
		acknowledge(x, stream);
	return r == 0;
}

void execution_view(const struct execution *x, struct execution_view *out)
{
	*out = (struct execution_view){
		.id = x->id,
		.sandbox_id = x->sandbox_id,
		.command = x->command.data,
		.command_len = x->command.len,
		.status = x->status,
		.pid = x->pid,
		.signal = x->exit.signal,
		.exit_code = x->exit.code,
		.timed_out = x->status == EXECUTION_TIMEOUT,
		.oom_killed = x->oom_killed,
		.started_ms = x->started_ms,
		.duration_us = execution_has_ended(x) ? (int64_t)x->exit.duration_us
						      : (clock_wall_ms() - x->started_ms) * 1000,
	};
	for (int i = 0; i < EXECUTION_STREAMS; i++) {
		out->length[i] = x->outputs[i].end;
		out->stored[i] = x->outputs[i].stored;
		out->truncated |= x->outputs[i].end > x->outputs[i].stored;
	}
}

void execution_copy_output(const struct execution *x, struct output_copy copies[EXECUTION_STREAMS])
{
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		output_copy(&x->outputs[i], &copies[i]);
}

/* ---- ending ---- */

static void ended_and_stored(void *arg, int error)
{
	struct execution *x = arg;
	struct sandbox *s = x->sandbox;
	if (error) {
		log_error("an execution's end could not be stored", "execution", x->id);
		x->unstorable = true;
		return;
	}
	x->committed = true;
	if (s) {
		if (x->in_init) {
			send_frame(x, FRAME_FORGET, 0, 0, NULL, 0);
			flush(x);
		}
		DL_DELETE(s->live, x);
		x->sandbox = NULL;
		if (s->ephemeral && s->live == NULL)
			sandbox_destroy(s, NULL, NULL);
	}
	execution_free_if_unused(x);
}

static void store_execution(struct execution *x)
{
	struct execution_row row = {
		.id = x->id,
		.sandbox = x->sandbox_id,
		.tenant = x->tenant,
		.command = x->command.data,
		.command_len = x->command.len,
		.status = status_names[x->status],
		.exit_code = x->exit.code,
		.signal = x->exit.signal,
		.timed_out = x->status == EXECUTION_TIMEOUT,
		.oom_killed = x->oom_killed,
		.started_ms = x->started_ms,
		.duration_us = (int64_t)x->exit.duration_us,
	};
	for (int i = 0; i < EXECUTION_STREAMS; i++) {
		row.length[i] = (int64_t)x->outputs[i].end;
		row.stored[i] = (int64_t)x->outputs[i].stored;
		row.spooled[i] = x->outputs[i].fd >= 0;
		row.data[i] = x->outputs[i].memory.data;
	}
	store_put_execution(x->box->store, &row, ended_and_stored, x);
}

static void count_end(struct box *b, const struct execution *x)
{
	b->counters.executions_running--;
	b->counters.timeouts_total += x->status == EXECUTION_TIMEOUT;
	b->counters.oom_kills_total += x->oom_killed;
}

static void execution_end(struct execution *x, enum execution_status status)
{
	x->status = status;
	if (x->sandbox)
		sandbox_execution_ended(x->sandbox);
	if (x->internal) {
		/* Nobody will ask for it again: forget it now, and free it after its watchers. */
		if (x->in_init)
			send_frame(x, FRAME_FORGET, 0, 0, NULL, 0);
		flush(x);
		if (x->sandbox)
			DL_DELETE(x->sandbox->live, x);
		x->sandbox = NULL;
		x->committed = true;
	} else {
		count_end(x->box, x);
	}
	struct execution_watcher hold = {.changed = NULL};
	DL_PREPEND(x->watchers, &hold);
	for (struct execution_watcher *w = hold.next, *next; w; w = next) {
		next = w->next;
		w->changed(w->arg);
	}
	DL_DELETE(x->watchers, &hold);
	/* After the answer: the store's thread would compete with it for the processor. */
	if (!x->internal)
		store_execution(x);
	execution_free_if_unused(x);
}

static enum execution_status status_of_exit(const struct frame_exit *exit)
{
	if (exit->flags & FRAME_EXIT_TIMED_OUT)
		return EXECUTION_TIMEOUT;
	if (exit->flags & FRAME_EXIT_KILLED)
		return EXECUTION_CANCELLED;
	return exit->signal ? EXECUTION_FAILED : EXECUTION_COMPLETED;
}

/* What a shell would report, whatever happened. */
static void finish_exit(struct execution *x)
{
	enum execution_status status = status_of_exit(&x->exit);
	if (status == EXECUTION_TIMEOUT) {
		x->exit.code = 124;
		x->exit.signal = 0;
	} else if (x->exit.signal) {
		x->exit.code = 128 + x->exit.signal;
	}
	execution_end(x, status);
}

struct oom_question {
	struct box *box;
	char execution[ID_SIZE];
	char sandbox[ID_SIZE];
};

static void oom_answered(void *arg, const struct warden_reply *reply)
{
	struct oom_question *q = arg;
	struct execution *x = NULL;
	struct sandbox *s = NULL;
	HASH_FIND(by_id, q->box->executions, q->execution, ID_LEN, x);
	HASH_FIND(by_id, q->box->sandboxes, q->sandbox, ID_LEN, s);
	if (s && reply->error == 0 && reply->usage.oom_kills > s->oom_seen) {
		s->oom_seen = reply->usage.oom_kills;
		if (x)
			x->oom_killed = true;
	}
	if (x && !execution_has_ended(x))
		finish_exit(x);
	free(q);
}

/* SIGKILL, seen directly or through a shell, may have come from the kernel: ask who counts. */
static void handle_exit(struct execution *x, const struct frame_exit *exit)
{
	bool ours = exit->flags & (FRAME_EXIT_TIMED_OUT | FRAME_EXIT_KILLED);
	x->exit = *exit;
	if (ours || x->internal || (exit->signal != SIGKILL && exit->code != 128 + SIGKILL)) {
		/* It may have lost a child to the memory limit: that must not be blamed on a later
		 * one. */
		if ((int64_t)exit->max_rss_kib * 1024 > x->sandbox->resources.memory / 8)
			sandbox_note_oom(x->sandbox);
		finish_exit(x);
		return;
	}
	struct oom_question *q = calloc(1, sizeof *q);
	if (!q)
		abort();
	q->box = x->box;
	memcpy(q->execution, x->id, ID_SIZE);
	memcpy(q->sandbox, x->sandbox_id, ID_SIZE);
	warden_link_call(&x->box->warden, WARDEN_USAGE, x->sandbox_id, NULL, oom_answered, q);
}

void execution_end_all(struct sandbox *s, enum execution_status status)
{
	struct execution *x, *next;
	DL_FOREACH_SAFE (s->live, x, next) {
		bool ended = execution_has_ended(x);
		DL_DELETE(s->live, x);
		x->in_init = false;
		if (!ended) {
			x->exit.code = 128 + SIGKILL;
			x->exit.signal = SIGKILL;
			x->exit.duration_us = (uint64_t)(clock_wall_ms() - x->started_ms) * 1000;
			sandbox_execution_ended(s);
		}
		x->sandbox = NULL;
		if (!ended)
			execution_end(x, status);
	}
}

static bool is_overdue(const struct execution *x, int64_t now)
{
	if (x->status == EXECUTION_QUEUED)
		return now > x->started_ms + OVERDUE_MS;
	return x->status == EXECUTION_RUNNING && x->timeout_ms > 0 &&
	       now > x->started_ms + x->timeout_ms + OVERDUE_MS;
}

static void kill_answered(void *arg, const struct warden_reply *reply)
{
	(void)reply;
	box_check_closed(arg);
}

/* Init can be made to wait from inside: whoever stops a process before its exec stops init with it.
 */
void execution_check_overdue(struct box *b)
{
	int64_t now = clock_wall_ms();
	struct sandbox *s, *next;
	DL_FOREACH_SAFE (b->order, s, next) {
		const struct execution *x;
		bool overdue = false;
		DL_FOREACH (s->live, x)
			overdue |= is_overdue(x, now);
		if (!overdue || s->status == SANDBOX_STOPPING || s->status == SANDBOX_FAILED)
			continue;
		sandbox_fail(s, "its init does not answer");
		warden_link_call(&b->warden, WARDEN_KILL, s->id, NULL, kill_answered, b);
	}
}

void execution_abandon_all(struct sandbox *s)
{
	struct execution *x, *next;
	DL_FOREACH_SAFE (s->live, x, next) {
		DL_DELETE(s->live, x);
		x->sandbox = NULL;
		x->status = execution_has_ended(x) ? x->status : EXECUTION_CANCELLED;
		x->committed = true;
		execution_free_if_unused(x);
	}
}

void execution_cancel(struct execution *x)
{
	if (execution_has_ended(x))
		return;
	send_frame(x, FRAME_KILL, 0, 0, NULL, 0);
	flush(x);
}

/* ---- frames in ---- */

/* It never ran: a user, directory or resource that is missing is the caller's error ... */
static void refuse(struct execution *x, int stage, int error)
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
	char text[512], path[256];
	int n = snprintf(text, sizeof text, "bunker: cannot run '%.300s': %s\n",
		x->command.len ? x->command.data : "", strerror(error));
	output_path(x->box, x->id, FRAME_STDERR, path);
	output_append(&x->outputs[FRAME_STDERR], path, (uint64_t)x->box->config.output_limit, false,
		0, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
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
		refuse(x, started->stage, started->error);
	} else {
		x->pid = started->pid;
		x->in_init = true;
		x->status = EXECUTION_RUNNING;
		notify(x);
	}
}

static int handle_output(struct execution *x, const struct frame_header *h, const char *payload)
{
	char path[256];
	output_path(x->box, x->id, h->stream, path);
	bool paced = slowest_position(x, h->stream) != UINT64_MAX;
	uint64_t limit = x->internal ? 0 : (uint64_t)x->box->config.output_limit;
	if (execution_has_ended(x))
		return 0;
	int r = output_append(
		&x->outputs[h->stream], path, limit, paced, h->offset, payload, h->size);
	if (r < 0)
		return r;
	acknowledge(x, h->stream);
	notify(x);
	return 0;
}

static int dispatch(struct execution *x, const struct frame_header *h, const char *payload)
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
		if (x->input_start != UINT64_MAX)
			send_input(x, h->offset);
		return 0;
	case FRAME_EXIT:
		r = frame_payload(h, payload, &exit, sizeof exit);
		if (r == 0 && x->status == EXECUTION_RUNNING)
			handle_exit(x, &exit);
		return r;
	default:
		return -EPROTO;
	}
}

static struct execution *find_by_tag(const struct sandbox *s, uint64_t tag)
{
	struct execution *x;
	DL_FOREACH (s->live, x)
		if (x->tag == tag)
			return x;
	return NULL;
}

void execution_handle_frame(struct sandbox *s, const struct frame_header *h, const char *payload)
{
	struct execution *x = find_by_tag(s, h->tag);
	if (x && dispatch(x, h, payload) < 0)
		sandbox_fail(s, "its init sent a frame that makes no sense");
}

/* ---- after a restart ---- */

void execution_adopt(struct sandbox *s, uint64_t tag, const struct frame_record *record,
	const char *command, size_t command_len)
{
	char id[ID_SIZE], path[256];
	memcpy(id, record->execution, ID_SIZE);
	id[ID_LEN] = '\0';
	bool internal = record->flags & FRAME_START_BUILTIN;
	if (!id_is_valid(id) || find_by_tag(s, tag) || execution_find(s->box, s->tenant, id))
		return;
	struct execution *x = execution_new(s, internal);
	memcpy(x->id, id, ID_SIZE);
	x->tag = tag;
	x->pid = record->pid;
	x->in_init = true;
	x->started_ms = record->started_ms;
	x->status = EXECUTION_RUNNING;
	x->input_start = UINT64_MAX;
	buf_append(&x->command, command, command_len);
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++) {
		output_path(s->box, id, i, path);
		output_restore(&x->outputs[i], path);
		x->acked[i] = record->acked[i];
		/* Init starts again at what it was told last. */
		if (x->outputs[i].end < record->acked[i])
			x->outputs[i].end = record->acked[i];
	}
	/* The rest of its stdin, and the file we were writing, went with the request. */
	send_frame(x, internal ? FRAME_KILL : FRAME_STDIN_END, 0, 0, NULL, 0);
	flush(x);
	if (internal)
		return;
	execution_index(x);
	s->executions++; /* the store counts it when it ends */
}

/* ---- from the store ---- */

struct loading {
	struct box *box;
	execution_loaded_fn *loaded;
	void *arg;
};

static void load_output(const struct box *b, const struct execution_row *row, unsigned stream,
	struct output_copy *ret)
{
	char path[256];
	struct output o;
	output_init(&o);
	if (row->spooled[stream]) {
		output_path(b, row->id, stream, path);
		output_restore(&o, path);
	} else {
		buf_append(&o.memory, row->data[stream], (size_t)row->stored[stream]);
		o.stored = o.memory.len;
	}
	output_copy(&o, ret);
	output_finish(&o);
}

static void row_found(void *arg, const struct execution_row *row)
{
	struct loading *l = arg;
	struct output_copy copies[EXECUTION_STREAMS] = {{.fd = -1}, {.fd = -1}};
	if (!row) {
		l->loaded(l->arg, NULL, copies);
		free(l);
		return;
	}
	struct execution_view view = {
		.id = row->id,
		.sandbox_id = row->sandbox,
		.command = row->command,
		.command_len = row->command_len,
		.status = execution_status_of(row->status),
		.exit_code = (int)row->exit_code,
		.signal = (int)row->signal,
		.timed_out = row->timed_out,
		.oom_killed = row->oom_killed,
		.started_ms = row->started_ms,
		.duration_us = row->duration_us,
	};
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++) {
		load_output(l->box, row, i, &copies[i]);
		view.length[i] = (uint64_t)row->length[i];
		view.stored[i] = (uint64_t)row->stored[i];
		view.truncated |= row->length[i] > row->stored[i];
	}
	l->loaded(l->arg, &view, copies);
	free(l);
}

void execution_load(
	struct box *b, const char *tenant, const char *id, execution_loaded_fn *loaded, void *arg)
{
	struct loading *l = calloc(1, sizeof *l);
	if (!l)
		abort();
	*l = (struct loading){.box = b, .loaded = loaded, .arg = arg};
	store_get_execution(b->store, id, tenant, row_found, l);
}
