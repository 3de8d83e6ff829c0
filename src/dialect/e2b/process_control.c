/* List, SendSignal, Update: what is said to a process besides its input. */
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "dialect/e2b/process.h"

/* ---- which process ---- */

static const struct json_field selector_fields[] = {
	{"pid", JSON_INTEGER, offsetof(struct process_selector, pid), 0, 0, UINT32_MAX},
	{"tag", JSON_STRING, offsetof(struct process_selector, tag), 0, 0, 1024},
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

struct execution *process_find_any(const struct sandbox *s, const struct process_selector *selector)
{
	struct execution *x = NULL;
	if (selector->tag)
		x = execution_find_name(s, selector->tag);
	else if (selector->pid > 0 && selector->pid <= INT32_MAX)
		x = execution_find_pid(s, (int32_t)selector->pid);
	return x && execution_has_started(x) ? x : NULL;
}

struct execution *process_find(
	const struct sandbox *s, const struct process_selector *selector, struct error *e)
{
	struct execution *x = process_find_any(s, selector);
	if (x && !execution_has_ended(x))
		return x;
	process_not_found(selector, e);
	return NULL;
}

/* ---- List ---- */

static void put_config(struct json_writer *w, const struct execution_view *view)
{
	size_t at = view->command_len ? strnlen(view->command, view->command_len) + 1 : 0;
	json_key(w, "config");
	json_begin_object(w);
	json_put_string(w, "cmd", view->command_len ? view->command : "");
	json_key(w, "args");
	json_begin_array(w);
	for (; at < view->command_len;
		at += strnlen(view->command + at, view->command_len - at) + 1)
		json_string(w, view->command + at);
	json_end_array(w);
	if (view->cwd[0])
		json_put_string(w, "cwd", view->cwd);
	json_end_object(w);
}

static void handle_list(struct http_request *req)
{
	struct execution_view view;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	cJSON *message = connect_request(req);
	if (!message)
		return;
	cJSON_Delete(message);
	json_begin_object(&w);
	json_key(&w, "processes");
	json_begin_array(&w);
	for (struct execution *x = execution_first(envd_sandbox(req)); x; x = execution_next(x)) {
		if (!execution_has_started(x) || execution_has_ended(x))
			continue;
		execution_view(x, &view);
		json_begin_object(&w);
		put_config(&w, &view);
		json_put_int(&w, "pid", view.pid);
		if (view.name[0])
			json_put_string(&w, "tag", view.name);
		json_end_object(&w);
	}
	json_end_array(&w);
	json_end_object(&w);
	connect_respond(req, &body);
}

/* ---- SendSignal ---- */

struct signal_message {
	const cJSON *process, *signal;
};

static const struct json_field signal_fields[] = {
	{"process", JSON_OBJECT, offsetof(struct signal_message, process), JSON_REQUIRED, 0, 0},
	{"signal", JSON_ANY, offsetof(struct signal_message, signal), JSON_REQUIRED, 0, 0},
};

/* Enums come by name or by number. */
static int decode_signal(const cJSON *signal, struct error *e)
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

/* A kill is answered when the process is gone: what comes next does not find it any more. */
struct kill_call {
	struct http_request *req;
	struct execution *execution;
	struct execution_watcher watcher;
};

static void kill_free(struct kill_call *call)
{
	execution_unwatch(call->execution, &call->watcher);
	free(call);
}

static void kill_aborted(void *arg)
{
	kill_free(arg);
}

static void kill_changed(void *arg)
{
	struct kill_call *call = arg;
	struct http_request *req = call->req;
	if (!execution_has_ended(call->execution))
		return;
	kill_free(call);
	connect_respond_empty(req);
}

/* What a command has started does not outlive its kill. */
static void kill_tree(struct http_request *req, struct execution *x)
{
	struct kill_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->execution = x;
	call->watcher = (struct execution_watcher){.changed = kill_changed, .arg = call};
	http_on_abort(req, kill_aborted, call);
	execution_watch(x, &call->watcher);
	execution_signal(x, SIGKILL, true);
}

static int decode_send_signal(
	const cJSON *message, struct process_selector *selector, struct error *e)
{
	struct signal_message fields = {0};
	if (json_decode_known(message, signal_fields, ARRAY_LEN(signal_fields), "", &fields, e) <
			0 ||
		process_decode_selector(fields.process, selector, e) < 0)
		return -1;
	return decode_signal(fields.signal, e);
}

static void handle_send_signal(struct http_request *req)
{
	struct error e = {0};
	struct process_selector selector;
	cJSON *message = connect_request(req);
	if (!message)
		return;
	int number = decode_send_signal(message, &selector, &e);
	struct execution *x = number < 0 ? NULL : process_find(envd_sandbox(req), &selector, &e);
	cJSON_Delete(message);
	if (!x) {
		http_respond_error(req, &e);
	} else if (number == SIGKILL) {
		kill_tree(req, x);
	} else {
		execution_signal(x, number, false);
		connect_respond_empty(req);
	}
}

/* ---- Update ---- */

struct update_message {
	const cJSON *process, *pty;
};

static const struct json_field update_fields[] = {
	{"process", JSON_OBJECT, offsetof(struct update_message, process), JSON_REQUIRED, 0, 0},
	{"pty", JSON_OBJECT, offsetof(struct update_message, pty), 0, 0, 0},
};

static int update(struct http_request *req, const cJSON *message, struct error *e)
{
	struct update_message fields = {0};
	struct process_selector selector;
	struct terminal_size size;
	if (json_decode_known(message, update_fields, ARRAY_LEN(update_fields), "", &fields, e) <
			0 ||
		process_decode_selector(fields.process, &selector, e) < 0 ||
		process_decode_size(fields.pty, &size, e) < 0)
		return -1;
	struct execution *x = process_find(envd_sandbox(req), &selector, e);
	if (!x)
		return -1;
	if (fields.pty && !execution_resize(x, (unsigned)size.rows, (unsigned)size.cols))
		return error_set(e, ERROR_INVALID_FIELD, "the process has no terminal");
	return 0;
}

static void handle_update(struct http_request *req)
{
	struct error e = {0};
	cJSON *message = connect_request(req);
	if (!message)
		return;
	if (update(req, message, &e) < 0)
		http_respond_error(req, &e);
	else
		connect_respond_empty(req);
	cJSON_Delete(message);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/process.Process/List", handle_list, CONNECT_BODY_LIMIT},
	{HTTP_POST, "/process.Process/SendSignal", handle_send_signal, CONNECT_BODY_LIMIT},
	{HTTP_POST, "/process.Process/Update", handle_update, CONNECT_BODY_LIMIT},
};

const struct route_table process_control_table = ROUTE_TABLE(routes);
