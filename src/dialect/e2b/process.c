/*
 * Start and Connect: a process and its output as a stream of events.
 *
 *     {"event":{"start":{"pid":42}}}
 *     {"event":{"data":{"stdout":"aGVsbG8K"}}}      or stderr, or pty
 *     {"event":{"end":{"exited":true,"status":"exit status 0"}}}
 *
 * A process outlives its streams: that a client goes away does not touch it. On the wire a start in
 * the background looks like any other, and its SDK sends the deadline of 60 seconds that it always
 * sends. So this deadline ends the stream only; any other was asked for, and ends the process and
 * everything it started.
 *
 * Connect begins where the streams before it have ended: what was missed meanwhile comes first. A
 * client that leaves in the middle of a flood has not taken all that was sent: its last quarter of
 * a second counts as missed, too, when it was more than a client takes in at once.
 */
#include "dialect/e2b/process.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialect/e2b/encode.h"
#include "dialect/e2b/process_events.h"

#define DEFAULT_DEADLINE_MS 60000
#define ARGUMENTS_MAX       4000
#define PATH_LEN_MAX        4095
#define RECENT_MS           250
#define RECENT_MAX          (64u * 1024)

/* ---- messages ---- */

struct start_message {
	const cJSON *process, *pty;
	const char *tag;
	bool stdin_open;
};

static const struct json_field start_fields[] = {
	{"process", JSON_OBJECT, offsetof(struct start_message, process), JSON_REQUIRED, 0, 0},
	{"pty", JSON_OBJECT, offsetof(struct start_message, pty), 0, 0, 0},
	{"tag", JSON_STRING, offsetof(struct start_message, tag), 0, 0, 1024},
	{"stdin", JSON_BOOL, offsetof(struct start_message, stdin_open), 0, 0, 0},
};

struct config_message {
	const char *cmd, *cwd;
	const cJSON *args, *envs;
};

static const struct json_field config_fields[] = {
	{"cmd", JSON_STRING, offsetof(struct config_message, cmd), JSON_REQUIRED | JSON_NOT_EMPTY,
		0, PATH_LEN_MAX},
	{"cwd", JSON_STRING, offsetof(struct config_message, cwd), 0, 0, PATH_LEN_MAX},
	{"args", JSON_ARRAY, offsetof(struct config_message, args), 0, 0, ARGUMENTS_MAX},
	{"envs", JSON_STRING_MAP, offsetof(struct config_message, envs), 0, 0, 1000},
};

static const struct json_field size_fields[] = {
	{"cols", JSON_INTEGER, offsetof(struct terminal_size, cols), 0, 1, TERMINAL_SIDE_MAX},
	{"rows", JSON_INTEGER, offsetof(struct terminal_size, rows), 0, 1, TERMINAL_SIDE_MAX},
};

int process_decode_size(const cJSON *pty, struct terminal_size *ret, struct error *e)
{
	const cJSON *size = cJSON_GetObjectItemCaseSensitive(pty, "size");
	*ret = (struct terminal_size){.cols = 80, .rows = 24};
	if (!size || cJSON_IsNull(size))
		return 0;
	return json_decode_known(size, size_fields, ARRAY_LEN(size_fields), "pty.size.", ret, e);
}

static int decode_argv(const struct config_message *config, struct scratch *memory,
	const char *const **ret, struct error *e)
{
	size_t n = 0;
	const cJSON *item;
	const char **argv = scratch_alloc(
		memory, ((size_t)cJSON_GetArraySize(config->args) + 2) * sizeof *argv);
	argv[n++] = config->cmd;
	cJSON_ArrayForEach(item, config->args)
	{
		if (!cJSON_IsString(item))
			return error_set_field(e, ERROR_INVALID_FIELD, "process.args",
				"\"process.args\" must hold strings only");
		argv[n++] = item->valuestring;
	}
	*ret = argv;
	return 0;
}

static char *join(struct scratch *memory, const char *name, const char *value)
{
	size_t size = strlen(name) + strlen(value) + 2;
	char *entry = scratch_alloc(memory, size);
	snprintf(entry, size, "%s=%s", name, value);
	return entry;
}

/* What E2B has in every environment, then what the request wants there. */
static int decode_env(const struct sandbox *s, const cJSON *envs, struct scratch *memory,
	const char *const **ret, struct error *e)
{
	struct sandbox_view view;
	const char *const *asked = NULL;
	size_t n = 0;
	if (json_environment(envs, "process.envs", memory, &asked, e) < 0)
		return -1;
	while (asked && asked[n])
		n++;
	const char **env = scratch_alloc(memory, (n + 4) * sizeof *env);
	sandbox_view(s, &view);
	env[0] = "E2B_SANDBOX=true";
	env[1] = join(memory, "E2B_SANDBOX_ID", view.id);
	env[2] = join(memory, "E2B_TEMPLATE_ID", view.template_name);
	if (n > 0)
		memcpy(env + 3, asked, n * sizeof *env);
	*ret = env;
	return 0;
}

static int decode_terminal(const cJSON *pty, struct execution_spec *spec, struct error *e)
{
	struct terminal_size size;
	if (!pty)
		return 0;
	if (process_decode_size(pty, &size, e) < 0)
		return -1;
	spec->terminal = true;
	spec->rows = (uint16_t)size.rows;
	spec->columns = (uint16_t)size.cols;
	return 0;
}

static int decode_start(const struct sandbox *s, const cJSON *message, struct scratch *memory,
	struct execution_spec *spec, struct error *e)
{
	struct start_message start = {.stdin_open = true};
	struct config_message config = {0};
	if (json_decode_known(message, start_fields, ARRAY_LEN(start_fields), "", &start, e) < 0 ||
		json_decode_known(start.process, config_fields, ARRAY_LEN(config_fields),
			"process.", &config, e) < 0 ||
		decode_argv(&config, memory, &spec->argv, e) < 0 ||
		decode_env(s, config.envs, memory, &spec->env, e) < 0 ||
		decode_terminal(start.pty, spec, e) < 0)
		return -1;
	if (config.cwd && config.cwd[0] && !(spec->cwd = envd_path(config.cwd, e)))
		return -1;
	spec->name = start.tag;
	spec->open_stdin = !start.pty && start.stdin_open;
	spec->kind = EXECUTION_PROCESS;
	return 0;
}

/* ---- the stream ---- */

/* Where the stream stood at a moment. */
struct mark {
	uint64_t time_ms; /* of the loop */
	uint64_t position[EXECUTION_STREAMS];
};

struct process_stream {
	const struct e2b *dialect;
	struct http_request *req; /* until the stream has begun */
	struct connect_stream *stream;
	struct execution *execution;
	struct execution_watcher watcher;
	char *user, *cwd; /* as the request had them, for what is said when they are wrong */
	bool announced;
	bool owns_deadline;   /* the stream's deadline is the process's */
	struct mark marks[2]; /* at least RECENT_MS apart, the older first */
	uint64_t last_sent_ms;
};

static void stream_free(struct process_stream *p)
{
	if (p->execution)
		execution_unwatch(p->execution, &p->watcher);
	free(p->user);
	free(p->cwd);
	free(p);
}

/* ---- what a client that left may not have taken ---- */

static void note_position(struct process_stream *p)
{
	uint64_t now = uv_now(p->dialect->loop);
	p->last_sent_ms = now;
	if (now - p->marks[1].time_ms < RECENT_MS)
		return;
	p->marks[0] = p->marks[1];
	p->marks[1].time_ms = now;
	memcpy(p->marks[1].position, p->watcher.position, sizeof p->watcher.position);
}

static void unsee_recent(struct process_stream *p)
{
	uint64_t now = uv_now(p->dialect->loop), recent = 0;
	const struct mark *safe = &p->marks[now - p->marks[1].time_ms >= RECENT_MS];
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		recent += p->watcher.position[i] - safe->position[i];
	if (now - p->last_sent_ms >= RECENT_MS || recent <= RECENT_MAX)
		return;
	memcpy(p->watcher.position, safe->position, sizeof safe->position);
	execution_unsee(p->execution, safe->position);
}

static void stream_closed(void *arg, bool client_left)
{
	struct process_stream *p = arg;
	if (client_left)
		unsee_recent(p);
	stream_free(p);
}

/* ---- what it tells ---- */

static bool collect_output(struct process_stream *p, const struct execution_view *view,
	unsigned index, struct buf *out)
{
	autobuf data = {0};
	if (!execution_read(p->execution, &p->watcher, index, PROCESS_DATA_MAX, &data))
		return false;
	if (data.len > 0)
		process_put_data(out, process_stream_name(view->terminal, index), &data);
	return true;
}

/* It ended because its sandbox did. */
static bool was_lost(const struct process_stream *p, const struct execution_view *ended)
{
	struct sandbox_view view;
	const struct sandbox *s = sandbox_find_any(p->dialect->box, ended->sandbox_id);
	if (ended->status == EXECUTION_COMPLETED)
		return false;
	if (s)
		sandbox_view(s, &view);
	return !s || e2b_state_of(&view) != E2B_RUNNING;
}

static enum connect_progress put_result(const struct process_stream *p,
	const struct execution_view *view, struct buf *out, struct error *e)
{
	if (was_lost(p, view))
		return CONNECT_RESET;
	if (view->timed_out && p->owns_deadline) {
		error_set(e, ERROR_REQUEST_TIMEOUT, "the deadline of the command has passed");
		return CONNECT_FAILED;
	}
	process_put_end(out, view);
	return CONNECT_DONE;
}

static enum connect_progress stream_collect(void *arg, struct buf *out, struct error *e)
{
	struct process_stream *p = arg;
	struct execution_view view;
	bool is_all_read = true;
	execution_view(p->execution, &view);
	if (!p->announced)
		process_put_start(out, view.pid);
	p->announced = true;
	note_position(p);
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++) {
		if (!collect_output(p, &view, i, out))
			return CONNECT_RESET;
		is_all_read &= p->watcher.position[i] >= view.length[i];
	}
	if (!execution_has_ended(p->execution) || !is_all_read)
		return CONNECT_MORE;
	return put_result(p, &view, out, e);
}

static void begin_stream(struct process_stream *p)
{
	const struct connect_source source = {stream_collect, PROCESS_KEEPALIVE, stream_closed, p};
	memcpy(p->marks[0].position, p->watcher.position, sizeof p->watcher.position);
	p->marks[1] = p->marks[0];
	p->marks[1].time_ms = uv_now(p->dialect->loop);
	p->stream = connect_stream_begin(take_ptr(p->req), p->dialect->loop, &source);
}

/* ---- Start ---- */

/* In envd's words, where there are any. */
static void refuse(struct process_stream *p, const struct error *why)
{
	struct error e = *why;
	struct http_request *req = p->req;
	if (strcmp(why->field, "user") == 0)
		error_set(&e, ERROR_UNAUTHORIZED, "invalid username: '%s'", p->user ? p->user : "");
	else if (strcmp(why->field, "cwd") == 0)
		error_set(&e, ERROR_INVALID_FIELD, "cwd '%.200s' does not exist",
			p->cwd ? p->cwd : "");
	stream_free(p);
	connect_stream_refuse(req, &e);
}

static void refuse_program(struct process_stream *p, const struct execution_view *view)
{
	struct error e;
	error_set(&e, ERROR_INVALID_FIELD, "cannot run '%.200s'", view->command);
	refuse(p, &e);
}

static void execution_changed(void *arg)
{
	struct process_stream *p = arg;
	struct execution_view view;
	if (p->stream) {
		connect_stream_wake(p->stream);
		return;
	}
	if (execution_refusal(p->execution)) {
		refuse(p, execution_refusal(p->execution));
		return;
	}
	execution_view(p->execution, &view);
	if (execution_has_ended(p->execution) && view.pid == 0)
		refuse_program(p, &view);
	else if (execution_has_started(p->execution))
		begin_stream(p);
}

/* The client left before its process had begun; that goes on nevertheless. */
static void start_aborted(void *arg)
{
	stream_free(arg);
}

static struct process_stream *stream_new(struct http_request *req)
{
	struct process_stream *p = calloc(1, sizeof *p);
	if (!p)
		abort();
	p->req = req;
	p->dialect = e2b_of(req);
	p->watcher =
		(struct execution_watcher){.changed = execution_changed, .arg = p, .paced = true};
	return p;
}

static int start(struct http_request *req, const cJSON *message, int64_t deadline_ms,
	struct process_stream **ret, struct error *e)
{
	autoscratch memory = {0};
	struct execution_spec spec = {0};
	struct sandbox *s = envd_sandbox(req);
	struct execution *x;
	if (deadline_ms != DEFAULT_DEADLINE_MS)
		spec.timeout_ms = deadline_ms;
	if (envd_user(req, &spec.user, e) < 0 || decode_start(s, message, &memory, &spec, e) < 0 ||
		execution_start(s, &spec, &x, e) < 0)
		return -1;
	struct process_stream *p = *ret = stream_new(req);
	p->execution = x;
	p->owns_deadline = spec.timeout_ms > 0;
	p->user = e2b_copy(spec.user);
	p->cwd = e2b_copy(spec.cwd);
	return 0;
}

static void handle_start(struct http_request *req)
{
	struct error e = {0};
	struct process_stream *p;
	cJSON *message = connect_stream_request(req);
	int64_t deadline_ms = message ? connect_timeout_ms(req) : -1;
	if (deadline_ms < 0) {
		cJSON_Delete(message);
		return;
	}
	int r = start(req, message, deadline_ms, &p, &e);
	cJSON_Delete(message);
	if (r < 0) {
		connect_stream_refuse(req, &e);
		return;
	}
	http_on_abort(req, start_aborted, p);
	execution_watch(p->execution, &p->watcher);
}

/* ---- Connect ---- */

static void join_process(struct http_request *req, const struct process_selector *selector)
{
	struct sandbox *s = envd_sandbox(req);
	struct execution *x = process_find_any(s, selector);
	if (!x) {
		process_connect_past(req, s, selector);
		return;
	}
	struct process_stream *p = stream_new(req);
	p->execution = x;
	execution_seen(x, p->watcher.position);
	execution_watch(x, &p->watcher);
	begin_stream(p);
}

static void handle_connect(struct http_request *req)
{
	struct error e = {0};
	struct process_selector selector;
	cJSON *message = connect_stream_request(req);
	if (!message)
		return;
	if (process_decode_selector(
		    cJSON_GetObjectItemCaseSensitive(message, "process"), &selector, &e) < 0)
		connect_stream_refuse(req, &e);
	else if (connect_timeout_ms(req) >= 0)
		join_process(req, &selector);
	cJSON_Delete(message);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/process.Process/Start", handle_start, CONNECT_BODY_LIMIT},
	{HTTP_POST, "/process.Process/Connect", handle_connect, CONNECT_BODY_LIMIT},
};

const struct e2b_table process_table = E2B_TABLE(routes);
