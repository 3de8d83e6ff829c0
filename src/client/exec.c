/*
 * Running commands. Always as a stream of JSON lines with the output in base64, so that the bytes
 * are exact and arrive when they are written; a caller without a callback has them collected.
 *
 * A stream is start, any number of stdout and stderr, then exit or error. Events of other types are
 * from a newer server and pass.
 *
 * Once a command runs it does so without us: when the connection is lost, its output is asked for
 * from the byte on that comes next.
 */
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "base/id.h"
#include "client/again.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/encode.h"
#include "client/failure.h"
#include "client/result.h"

struct execution {
	const struct bunker_exec_options *options;
	struct buf decoded;
	struct buf collected[2]; /* by enum bunker_stream */
	bool collected_all;
	struct again again;
	char id[ID_SIZE], sandbox_id[ID_SIZE]; /* once it runs; "": not yet */
	int64_t position[2]; /* the next byte; negative: so many of the last ones */
	cJSON *exit;         /* the exit event; NULL until it came */
};

static int take_start(struct execution *x, cJSON **event, struct bunker_error *e);
static int take_stdout(struct execution *x, cJSON **event, struct bunker_error *e);
static int take_stderr(struct execution *x, cJSON **event, struct bunker_error *e);
static int client_exec_take_exit(struct execution *x, cJSON **event, struct bunker_error *e);
static int take_error(struct execution *x, cJSON **event, struct bunker_error *e);

/* A handler that keeps the event takes it from its owner. */
static const struct {
	const char *type;
	int (*take)(struct execution *x, cJSON **event, struct bunker_error *e);
} events[] = {
	{"start", take_start},
	{"stdout", take_stdout},
	{"stderr", take_stderr},
	{"exit", client_exec_take_exit},
	{"error", take_error},
};

static int client_exec_take_line(void *arg, const char *line, size_t len, struct bunker_error *e)
{
	autojson *event = NULL;
	struct error why;
	if (json_parse(line, len, &event, &why) < 0)
		return client_fail(e, BUNKER_INVALID_RESPONSE,
			"the server sent an event that is not usable: %s", why.message);
	const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, "type"));
	for (size_t i = 0; type && i < ARRAY_LEN(events); i++)
		if (strcmp(type, events[i].type) == 0)
			return events[i].take(arg, &event, e);
	return 0;
}

static void client_exec_collect(struct execution *x, enum bunker_stream stream)
{
	struct buf *to = &x->collected[stream];
	size_t room = BUNKER_COLLECT_MAX - to->len, len = x->decoded.len;
	if (len > room) {
		len = room;
		x->collected_all = false;
	}
	buf_append(to, x->decoded.data, len);
}

static int client_exec_take_output(
	struct execution *x, enum bunker_stream stream, const cJSON *event, struct bunker_error *e)
{
	const char *data = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, "data"));
	const cJSON *offset = cJSON_GetObjectItemCaseSensitive(event, "offset");
	int r = client_decode_base64(&x->decoded, data ? data : "", e);
	if (r < 0 || x->decoded.len == 0)
		return r;
	if (cJSON_IsNumber(offset))
		x->position[stream] = (int64_t)offset->valuedouble + (int64_t)x->decoded.len;
	client_again_progress(&x->again);
	if (!x->options->output)
		client_exec_collect(x, stream);
	else if (x->options->output(
			 x->options->output_arg, stream, x->decoded.data, x->decoded.len) != 0)
		return client_fail(e, BUNKER_STOPPED, "the output is not wanted any more");
	return 0;
}

static const char *client_exec_text(const cJSON *event, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, key));
	return text ? text : "";
}

static int take_start(struct execution *x, cJSON **event, struct bunker_error *e)
{
	const struct bunker_exec_options *o = x->options;
	const cJSON *pid = cJSON_GetObjectItemCaseSensitive(*event, "pid");
	bool is_first = !x->id[0];
	(void)e;
	snprintf(x->id, sizeof x->id, "%s", client_exec_text(*event, "executionId"));
	snprintf(x->sandbox_id, sizeof x->sandbox_id, "%s", client_exec_text(*event, "sandboxId"));
	client_again_progress(&x->again);
	if (is_first && o->started)
		o->started(o->started_arg, x->sandbox_id, x->id,
			cJSON_IsNumber(pid) ? (int64_t)pid->valuedouble : 0);
	return 0;
}

static int take_stdout(struct execution *x, cJSON **event, struct bunker_error *e)
{
	return client_exec_take_output(x, BUNKER_STDOUT, *event, e);
}

static int take_stderr(struct execution *x, cJSON **event, struct bunker_error *e)
{
	return client_exec_take_output(x, BUNKER_STDERR, *event, e);
}

static int client_exec_take_exit(struct execution *x, cJSON **event, struct bunker_error *e)
{
	cJSON_Delete(x->exit);
	x->exit = take_ptr(*event);
	return 0;
}

static int take_error(struct execution *x, cJSON **event, struct bunker_error *e)
{
	return client_call_fail(e, 0, cJSON_GetObjectItemCaseSensitive(*event, "error"));
}

static int finish_result(struct execution *x, struct bunker_result *ret, struct bunker_error *e)
{
	struct bunker_result result = {0};
	client_decode_result(take_ptr(x->exit), &result);
	result.output_truncated |= !x->collected_all;
	result.out_size = x->collected[BUNKER_STDOUT].len;
	result.err_size = x->collected[BUNKER_STDERR].len;
	result.out = buf_take_str(&x->collected[BUNKER_STDOUT]);
	result.err = buf_take_str(&x->collected[BUNKER_STDERR]);
	if (!result.out || !result.err) {
		bunker_result_finish(&result);
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	}
	*ret = result;
	return 0;
}

/* ---- streams ---- */

static int client_exec_stream(struct bunker *b, const char *method, struct buf *target,
	const struct buf *body, struct execution *x, struct bunker_error *e)
{
	struct lines lines = {.take = client_exec_take_line, .arg = x};
	int r = client_call_lines(b, method, target, body, &lines, e);
	client_lines_finish(&lines);
	return r;
}

static void client_exec_finish(struct execution *x)
{
	buf_finish(&x->decoded);
	buf_finish(&x->collected[BUNKER_STDOUT]);
	buf_finish(&x->collected[BUNKER_STDERR]);
	cJSON_Delete(x->exit);
}

/* From where the stream stands. process NULL: it is known by x->id alone. */
static int read_output(struct bunker *b, struct execution *x, const char *sandbox_id,
	const char *process, bool follow, struct bunker_error *e)
{
	autobuf target = {0};
	buf_append_str(&target, sandbox_id ? "/v1/sandboxes/" : "/v1/executions/");
	client_call_append_escaped(&target, sandbox_id ? sandbox_id : process);
	if (sandbox_id) {
		buf_append_str(&target, "/processes/");
		client_call_append_escaped(&target, process);
	}
	buf_printf(&target, "/output?encoding=base64&follow=%s&offset=%lld",
		follow ? "true" : "false", (long long)x->position[BUNKER_STDOUT]);
	if (x->position[BUNKER_STDERR] != x->position[BUNKER_STDOUT])
		buf_printf(&target, "&stderrOffset=%lld", (long long)x->position[BUNKER_STDERR]);
	int r = client_exec_stream(b, "GET", &target, NULL, x, e);
	if (r == 0 && follow && !x->exit)
		r = client_fail(e, BUNKER_CONNECTION_LOST,
			"the server ended the stream before the process had ended");
	return r;
}

/* One that is gone with its connection, as a run's, cannot go on. */
static int client_exec_execute(struct bunker *b, struct buf *target, const struct buf *body,
	bool goes_on, const struct bunker_exec_options *options, struct bunker_result *ret,
	struct bunker_error *e)
{
	struct execution x = {.options = options, .collected_all = true, .again.bunker = b};
	int r = client_exec_stream(b, "POST", target, body, &x, e);
	if (r == 0 && !x.exit)
		r = client_fail(e, BUNKER_CONNECTION_LOST,
			"the server ended the stream before the command had ended");
	while (r < 0 && goes_on && x.id[0] && client_again(&x.again, e))
		r = read_output(b, &x, x.sandbox_id, x.id, true, e);
	if (r == 0)
		r = finish_result(&x, ret, e);
	client_exec_finish(&x);
	return r;
}

static int check_command(const struct bunker_exec_options *options, struct bunker_error *e)
{
	if (options->shell || (options->argv && options->argv[0]))
		return 0;
	return client_fail(e, BUNKER_INVALID_ARGUMENT, "there is no command to run");
}

int bunker_exec(struct bunker *b, const char *sandbox_id, const struct bunker_exec_options *options,
	struct bunker_result *ret, struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	if (check_command(options, e) < 0)
		return -1;
	buf_append_str(&target, "/v1/sandboxes/");
	client_call_append_escaped(&target, sandbox_id);
	buf_append_str(&target, "/exec");
	client_encode_exec(&(struct json_writer){.out = &body}, options);
	return client_exec_execute(b, &target, &body, true, options, ret, e);
}

int bunker_run(struct bunker *b, const struct bunker_create_options *sandbox,
	const struct bunker_exec_options *options, struct bunker_result *ret,
	struct bunker_error *e)
{
	static const struct bunker_create_options defaults = {0};
	autobuf target = {0}, body = {0};
	if (check_command(options, e) < 0)
		return -1;
	buf_append_str(&target, "/v1/run");
	client_encode_run(
		&(struct json_writer){.out = &body}, sandbox ? sandbox : &defaults, options);
	return client_exec_execute(b, &target, &body, false, options, ret, e);
}

int bunker_process_output(struct bunker *b, const char *sandbox_id, const char *process,
	const struct bunker_output_options *options, struct bunker_error *e)
{
	const struct bunker_exec_options callback = {
		.output = options->output, .output_arg = options->output_arg};
	struct execution x = {.options = &callback,
		.collected_all = true,
		.again.bunker = b,
		.position = {options->offset, options->offset}};
	int r;
	do
		r = read_output(b, &x, sandbox_id, process, options->follow, e);
	while (r < 0 && client_again(&x.again, e));
	client_exec_finish(&x);
	return r;
}
