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
 * Connect begins where the streams before it have ended: what was missed meanwhile comes first.
 * What a client was sent in its last quarter of a second may not have reached it: that comes again.
 */
#include "dialect/e2b/process.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "dialect/e2b/aliases.h"
#include "dialect/e2b/process_events.h"
#include "op/exec.h"

#define DEFAULT_DEADLINE_MS 60000
#define ARGUMENTS_MAX       4000
#define PATH_LEN_MAX        4095

/* ---- messages ---- */

struct start_message {
	const cJSON *process, *pty;
	const char *tag;
	bool stdin_open;
};

static const struct json_field start_fields[] = {
	{"process", FIELD_OBJECT, offsetof(struct start_message, process), FIELD_REQUIRED, 0, 0},
	{"pty", FIELD_OBJECT, offsetof(struct start_message, pty), 0, 0, 0},
	{"tag", FIELD_TEXT, offsetof(struct start_message, tag), 0, 0, 1024},
	{"stdin", FIELD_BOOL, offsetof(struct start_message, stdin_open), 0, 0, 0},
};

struct config_message {
	const char *cmd, *cwd;
	const cJSON *args, *envs;
};

static const struct json_field config_fields[] = {
	{"cmd", FIELD_TEXT, offsetof(struct config_message, cmd), FIELD_REQUIRED | FIELD_NOT_EMPTY,
		0, PATH_LEN_MAX},
	{"cwd", FIELD_TEXT, offsetof(struct config_message, cwd), 0, 0, PATH_LEN_MAX},
	{"args", FIELD_ARRAY, offsetof(struct config_message, args), 0, 0, ARGUMENTS_MAX},
	{"envs", FIELD_STRING_MAP, offsetof(struct config_message, envs), 0, 0, 1000},
};

static const struct json_field size_fields[] = {
	{"cols", FIELD_INTEGER, offsetof(struct terminal_size, cols), 0, 1, TERMINAL_SIDE_MAX},
	{"rows", FIELD_INTEGER, offsetof(struct terminal_size, rows), 0, 1, TERMINAL_SIDE_MAX},
};

int process_decode_size(const cJSON *pty, struct terminal_size *ret, struct error *e)
{
	const cJSON *size = cJSON_GetObjectItemCaseSensitive(pty, "size");
	*ret = (struct terminal_size){.cols = 80, .rows = 24};
	if (!size || cJSON_IsNull(size))
		return 0;
	return json_decode_known(size, size_fields, ARRAY_LEN(size_fields), "pty.size.", ret, e);
}

static int e2b_process_decode_argv(const struct config_message *config, struct scratch *memory,
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

/* What E2B has in every environment, then what the request wants there; op adds the template. */
static int decode_env(struct answer *a, const cJSON *envs, const char *const **ret, struct error *e)
{
	struct scratch *memory = &a->call.memory;
	const char *const *asked = NULL;
	size_t n = 0;
	if (json_environment(envs, "process.envs", memory, &asked, e) < 0)
		return -1;
	while (asked && asked[n])
		n++;
	const char **env = scratch_alloc(memory, (n + 3) * sizeof *env);
	size_t size = sizeof "E2B_SANDBOX_ID=" + strlen(a->call.sandbox);
	char *id = scratch_alloc(memory, size);
	snprintf(id, size, "E2B_SANDBOX_ID=%s", a->call.sandbox);
	env[0] = "E2B_SANDBOX=true";
	env[1] = id;
	if (n > 0)
		memcpy(env + 2, asked, n * sizeof *env);
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

static int decode_start(
	struct answer *a, const cJSON *message, struct execution_spec *spec, struct error *e)
{
	struct start_message start = {.stdin_open = true};
	struct config_message config = {0};
	if (json_decode_known(message, start_fields, ARRAY_LEN(start_fields), "", &start, e) < 0 ||
		json_decode_known(start.process, config_fields, ARRAY_LEN(config_fields),
			"process.", &config, e) < 0 ||
		e2b_process_decode_argv(&config, &a->call.memory, &spec->argv, e) < 0 ||
		decode_env(a, config.envs, &spec->env, e) < 0 ||
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

struct process_stream {
	struct process_selector selector; /* of Connect */
	const char *user, *cwd; /* as the request had them, for what is said when they are wrong */
	bool terminal;
	bool owns_deadline; /* the stream's deadline is the process's */
};

/* A program that cannot be run has no pid. */
static int e2b_process_put_start(
	struct answer *a, const struct execution_view *view, struct error *e)
{
	struct process_stream *p = a->own;
	p->terminal = view->terminal;
	if (view->pid == 0 && view->status > EXECUTION_RUNNING)
		return error_set(e, ERROR_INVALID_FIELD, "cannot run '%.200s'",
			view->command.len ? view->command.data : "");
	process_put_start(&a->out, (int32_t)view->pid);
	return 0;
}

static int e2b_process_put_end(struct answer *a, const struct op_event *event, struct error *e)
{
	const struct process_stream *p = a->own;
	if (event->lost)
		return error_set(e, ERROR_NONE, "the client shall see a broken connection");
	if (event->execution->timed_out && p->owns_deadline)
		return error_set(
			e, ERROR_REQUEST_TIMEOUT, "the deadline of the command has passed");
	process_put_end(&a->out, event->execution);
	return 0;
}

static int process_stream_put(struct answer *a, const struct op_event *event, struct error *e)
{
	const struct process_stream *p = a->own;
	const struct op_output *o = &event->output;
	switch (event->kind) {
	case OP_STARTED:
		return e2b_process_put_start(a, event->execution, e);
	case OP_OUTPUT:
		if (o->bytes->len > 0)
			process_put_data(
				&a->out, process_stream_name(p->terminal, o->stream), o->bytes);
		return 0;
	case OP_EXITED:
		return e2b_process_put_end(a, event, e);
	default:
		envelope_put_end(&a->out, NULL);
		return 0;
	}
}

/* In envd's words, where there are any, and in the last envelope. */
static enum answer_failure process_stream_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	const struct process_stream *p = a->own;
	if (e->code == ERROR_NONE || (event && event->reason == OP_BROKEN))
		return ANSWER_ERROR;
	if (strcmp(e->field, "user") == 0)
		error_set(e, ERROR_UNAUTHORIZED, "invalid username: '%s'", p->user ? p->user : "");
	else if (strcmp(e->field, "cwd") == 0)
		error_set(e, ERROR_INVALID_FIELD, "cwd '%.200s' does not exist",
			p->cwd ? p->cwd : "");
	else if (event && event->reason == OP_NO_EXECUTION)
		process_not_found(&p->selector, e);
	return rpc_stream_fail(a, e, event);
}

static const struct answer_form stream_form = {.type = "application/connect+json",
	.pace = ANSWER_LIVE,
	.own_size = sizeof(struct process_stream),
	.put = process_stream_put,
	.fail = process_stream_fail};

static struct answer *stream_answer(struct http_request *req)
{
	static const char keepalive[] = "\0\0\0\0\x1a" PROCESS_KEEPALIVE;
	struct answer *a = envd_answer(req, &stream_form);
	answer_keep_alive(a, keepalive, sizeof keepalive - 1, rpc_keepalive_ms(req));
	return a;
}

/* ---- Start ---- */

static void handle_start(struct http_request *req)
{
	struct error e = {0};
	struct op_exec exec = {.wants = OP_EXEC_STREAM,
		.template_variable = "E2B_TEMPLATE_ID",
		.piece = PROCESS_DATA_MAX};
	struct answer *a = stream_answer(req);
	struct process_stream *p = a->own;
	const cJSON *message = rpc_stream_message(a, &e);
	if (!message || rpc_deadline(req, &a->call.deadline_ms, &e) < 0 ||
		envd_user(req, &exec.spec.user, &e) < 0 ||
		decode_start(a, message, &exec.spec, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	if (a->call.deadline_ms != DEFAULT_DEADLINE_MS)
		exec.spec.timeout_ms = a->call.deadline_ms;
	p->owns_deadline = exec.spec.timeout_ms > 0;
	p->user = exec.spec.user;
	p->cwd = http_copy(req, exec.spec.cwd);
	a->op = op_exec(&a->call, &exec);
	answer_run(a);
}

/* ---- Connect ---- */

/*
 * E2B forgets processes half a minute after their end; here Connect finds them as long as the
 * server keeps results.
 */
static void handle_connect(struct http_request *req)
{
	struct error e = {0};
	struct answer *a = stream_answer(req);
	struct process_stream *p = a->own;
	const cJSON *message = rpc_stream_message(a, &e);
	if (!message ||
		process_decode_selector(cJSON_GetObjectItemCaseSensitive(message, "process"),
			&p->selector, &e) < 0 ||
		rpc_deadline(req, &a->call.deadline_ms, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_attach(&a->call, &(struct op_attach){.process = process_ref(&p->selector),
					    .among_ended = true,
					    .where_left = true,
					    .piece = PROCESS_DATA_MAX});
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/process.Process/Start", handle_start, RPC_BODY_LIMIT},
	{HTTP_POST, "/process.Process/Connect", handle_connect, RPC_BODY_LIMIT,
		.scope = HTTP_SCOPE_READ},
};

const struct route_table process_table = ROUTE_TABLE(routes);
