/* List, SendSignal, Update, CloseStdin: what is said to a process besides its input. */
#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "dialect/e2b/process.h"

/* ---- which process ---- */

static const struct json_field selector_fields[] = {
	{"pid", FIELD_INTEGER, offsetof(struct process_selector, pid), 0, 0, UINT32_MAX},
	{"tag", FIELD_TEXT, offsetof(struct process_selector, tag), 0, 0, 1024},
};

int process_decode_selector(const cJSON *selector, struct process_selector *ret, struct error *e)
{
	*ret = (struct process_selector){0};
	if (!selector)
		return error_set_field(
			e, ERROR_MISSING_FIELD, "process", "\"process\" is required");
	return json_decode_known(
		selector, selector_fields, ARRAY_LEN(selector_fields), "process.", ret, e);
}

int process_not_found(const struct process_selector *selector, struct error *e)
{
	if (selector->tag)
		return error_set(
			e, ERROR_NOT_FOUND, "process with tag %.128s not found", selector->tag);
	return error_set(
		e, ERROR_NOT_FOUND, "process with pid %lld not found", (long long)selector->pid);
}

struct execution_ref process_ref(const struct process_selector *selector)
{
	return (struct execution_ref){.by = selector->tag ? EXECUTION_BY_NAME : EXECUTION_BY_PID,
		.text = selector->tag,
		.pid = selector->pid};
}

enum answer_failure process_call_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	const struct process_call *call = a->own;
	if (event && event->reason == OP_NO_EXECUTION)
		process_not_found(&call->selector, e);
	return ANSWER_ERROR;
}

/* ---- List ---- */

/* What the caller gave: not what every process has. */
static void put_envs(struct json_writer *w, const struct execution_view *view)
{
	static const char *const common[] = {"E2B_SANDBOX", "E2B_SANDBOX_ID", "E2B_TEMPLATE_ID"};
	json_key(w, "envs");
	json_begin_object(w);
	for (size_t at = 0; at < view->env.len; at += strlen(view->env.data + at) + 1) {
		const char *entry = view->env.data + at;
		size_t len = strcspn(entry, "="), i = 0;
		while (i < ARRAY_LEN(common) &&
			!(strlen(common[i]) == len && strncmp(entry, common[i], len) == 0))
			i++;
		if (i < ARRAY_LEN(common) || !entry[len])
			continue;
		json_key_n(w, entry, len);
		json_string(w, entry + len + 1);
	}
	json_end_object(w);
}

static void put_config(struct json_writer *w, const struct execution_view *view)
{
	size_t at = view->command.len ? strnlen(view->command.data, view->command.len) + 1 : 0;
	json_key(w, "config");
	json_begin_object(w);
	json_put_string(w, "cmd", view->command.len ? view->command.data : "");
	json_key(w, "args");
	json_begin_array(w);
	for (; at < view->command.len;
		at += strnlen(view->command.data + at, view->command.len - at) + 1)
		json_string(w, view->command.data + at);
	json_end_array(w);
	put_envs(w, view);
	if (view->cwd[0])
		json_put_string(w, "cwd", view->cwd);
	json_end_object(w);
}

static void e2b_process_control_process_list_row(
	struct json_writer *w, const struct execution_view *view)
{
	json_begin_object(w);
	put_config(w, view);
	json_put_int(w, "pid", view->pid);
	if (view->name[0])
		json_put_string(w, "tag", view->name);
	json_end_object(w);
}

static int e2b_process_control_process_list_put(
	struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer *w = a->own;
	(void)e;
	if (event->kind == OP_EXECUTION && event->execution->status == EXECUTION_RUNNING)
		e2b_process_control_process_list_row(w, event->execution);
	if (event->kind != OP_DONE)
		return 0;
	json_end_array(w);
	json_end_object(w);
	return 0;
}

static void e2b_process_control_handle_list(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct json_writer),
		.put = e2b_process_control_process_list_put};
	struct error e = {0};
	struct answer *a = envd_answer(req, &form);
	struct json_writer *w = a->own;
	if (!rpc_message(a, &e)) {
		answer_refuse(a, &e);
		return;
	}
	w->out = &a->out;
	json_begin_object(w);
	json_key(w, "processes");
	json_begin_array(w);
	a->op = op_process_list(&a->call, &(struct op_process_list){.running = true});
	answer_run(a);
}

/* ---- what is said to one ---- */

static const struct answer_form control_form = {.type = "application/json",
	.pace = ANSWER_WHOLE,
	.own_size = sizeof(struct process_call),
	.put = rpc_put_empty,
	.fail = process_call_fail};

typedef int control_decode_fn(const cJSON *message, struct process_selector *selector,
	struct op_process *ret, struct error *e);

static void control_handle(
	struct http_request *req, const struct answer_form *form, control_decode_fn *decode)
{
	struct error e = {0};
	struct op_process request = {0};
	struct answer *a = envd_answer(req, form);
	struct process_call *call = a->own;
	const cJSON *message = rpc_message(a, &e);
	if (!message || decode(message, &call->selector, &request, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	request.process = process_ref(&call->selector);
	a->op = op_process(&a->call, &request);
	answer_run(a);
}

/* ---- SendSignal ---- */

struct signal_message {
	const cJSON *process, *signal;
};

static const struct json_field signal_fields[] = {
	{"process", FIELD_OBJECT, offsetof(struct signal_message, process), FIELD_REQUIRED, 0, 0},
	{"signal", FIELD_ANY, offsetof(struct signal_message, signal), FIELD_REQUIRED, 0, 0},
};

/* Enums come by name or by number. */
static int e2b_process_control_decode_signal(const cJSON *signal, struct error *e)
{
	static const struct {
		const char *name;
		int number;
	} known[] = {{"SIGNAL_SIGTERM", SIGTERM}, {"SIGNAL_SIGKILL", SIGKILL}};
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if ((cJSON_IsString(signal) && strcmp(signal->valuestring, known[i].name) == 0) ||
			(cJSON_IsNumber(signal) && signal->valuedouble == known[i].number))
			return known[i].number;
	return error_set_field(e, ERROR_INVALID_FIELD, "signal",
		"\"signal\" must be SIGNAL_SIGTERM or SIGNAL_SIGKILL");
}

/*
 * A kill is answered when the process is gone, so that what comes next does not find it any more;
 * and what the process has started does not outlive it.
 */
static int decode_send_signal(const cJSON *message, struct process_selector *selector,
	struct op_process *ret, struct error *e)
{
	struct signal_message fields = {0};
	if (json_decode_known(message, signal_fields, ARRAY_LEN(signal_fields), "", &fields, e) <
			0 ||
		process_decode_selector(fields.process, selector, e) < 0)
		return -1;
	ret->act = OP_PROCESS_SIGNAL;
	ret->signal = e2b_process_control_decode_signal(fields.signal, e);
	ret->tree = ret->signal == SIGKILL;
	ret->wait_ms = ret->tree ? OP_WAIT_FOREVER : 0;
	return ret->signal < 0 ? -1 : 0;
}

static void handle_send_signal(struct http_request *req)
{
	control_handle(req, &control_form, decode_send_signal);
}

/* ---- Update ---- */

struct update_message {
	const cJSON *process, *pty;
};

static const struct json_field update_fields[] = {
	{"process", FIELD_OBJECT, offsetof(struct update_message, process), FIELD_REQUIRED, 0, 0},
	{"pty", FIELD_OBJECT, offsetof(struct update_message, pty), 0, 0, 0},
};

static int e2b_process_control_decode_update(const cJSON *message,
	struct process_selector *selector, struct op_process *ret, struct error *e)
{
	struct update_message fields = {0};
	struct terminal_size size;
	if (json_decode_known(message, update_fields, ARRAY_LEN(update_fields), "", &fields, e) <
			0 ||
		process_decode_selector(fields.process, selector, e) < 0 ||
		process_decode_size(fields.pty, &size, e) < 0)
		return -1;
	ret->act = fields.pty ? OP_PROCESS_RESIZE : OP_PROCESS_LOOK;
	ret->rows = (unsigned)size.rows;
	ret->columns = (unsigned)size.cols;
	return 0;
}

static void e2b_process_control_handle_update(struct http_request *req)
{
	control_handle(req, &control_form, e2b_process_control_decode_update);
}

/* ---- CloseStdin ---- */

static enum answer_failure close_stdin_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	if (event && event->reason == OP_ERROR && e->code == ERROR_INVALID_REQUEST)
		error_set(e, ERROR_INTERNAL,
			"error closing stdin: a terminal has none; send Ctrl+D (0x04) to it");
	return process_call_fail(a, e, event);
}

static int decode_close_stdin(const cJSON *message, struct process_selector *selector,
	struct op_process *ret, struct error *e)
{
	ret->act = OP_PROCESS_END_INPUT;
	return process_decode_selector(
		cJSON_GetObjectItemCaseSensitive(message, "process"), selector, e);
}

static void handle_close_stdin(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct process_call),
		.put = rpc_put_empty,
		.fail = close_stdin_fail};
	control_handle(req, &form, decode_close_stdin);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/process.Process/List", e2b_process_control_handle_list, RPC_BODY_LIMIT,
		.scope = HTTP_SCOPE_READ},
	{HTTP_POST, "/process.Process/SendSignal", handle_send_signal, RPC_BODY_LIMIT},
	{HTTP_POST, "/process.Process/Update", e2b_process_control_handle_update, RPC_BODY_LIMIT},
	{HTTP_POST, "/process.Process/CloseStdin", handle_close_stdin, RPC_BODY_LIMIT},
};

const struct route_table process_control_table = ROUTE_TABLE(routes);
