/*
 * POST /sandbox, GET and DELETE /sandbox/{id}, GET /sandbox/status/{id}.
 *
 * A create with a command runs it; with `oneshot` the sandbox ends with it. Either way the command
 * is an execution that can be asked for.
 */
#include <stdlib.h>
#include <string.h>

#include "dialect/agentuity/create.h"
#include "dialect/agentuity/encode.h"
#include "dialect/agentuity/input.h"
#include "box/disk/snapshot.h"
#include "dialect/agentuity/snapshots.h"
#include "dialect/agentuity/waiting.h"

/* ---- create ---- */

struct create_call {
	struct http_request *req; /* NULL once the client has gone */
	struct agentuity *dialect;
	cJSON *body; /* what the rest borrows from */
	struct scratch memory;
	struct agentuity_create create;
	char sandbox_id[ID_SIZE];
	char *tenant;
};

static void call_free(struct create_call *call)
{
	scratch_finish(&call->memory);
	cJSON_Delete(call->body);
	free(call->tenant);
	free(call);
}

static void create_aborted(void *arg)
{
	((struct create_call *)arg)->req = NULL;
}

static void respond_created(
	struct create_call *call, const struct sandbox *s, const struct execution *x)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct sandbox_view view;
	struct execution_view run;
	sandbox_view(s, &view);
	agentuity_begin_data(&w);
	json_begin_object(&w);
	agentuity_put_id(&w, "sandboxId", "sbx_", view.id);
	json_put_string(&w, "status", agentuity_status(&view));
	if (x) {
		execution_view(x, &run);
		agentuity_put_id(&w, "executionId", "exe_", run.id);
		if (!call->create.ignores[0])
			agentuity_put_stream_url(&w, "stdoutStreamUrl", call->req, run.id, 0);
		if (!call->create.ignores[1])
			agentuity_put_stream_url(&w, "stderrStreamUrl", call->req, run.id, 1);
	}
	json_end_object(&w);
	agentuity_respond_data(call->req, 201, &w);
}

/* Nobody knows its id yet: it goes. */
static void fail(struct create_call *call, struct sandbox *s, const struct error *e)
{
	if (s)
		sandbox_destroy(s, NULL, NULL);
	if (call->req)
		http_respond_error(call->req, e);
	call_free(call);
}

static void start_command(struct create_call *call, struct sandbox *s)
{
	struct error e = {0};
	struct execution *x = NULL;
	const struct execution_spec spec = {
		.argv = call->create.argv,
		.open_stdin = call->create.stdin_id != NULL,
		.kind = EXECUTION_COMMAND,
	};
	if (execution_start(s, &spec, &x, &e) < 0 ||
		(call->create.stdin_id && input_attach(call->dialect, call->tenant,
						  call->create.stdin_id, x, &e) < 0)) {
		fail(call, s, &e);
		return;
	}
	respond_created(call, s, x);
	call_free(call);
}

static void files_written(void *arg, const struct error *e)
{
	struct create_call *call = arg;
	struct sandbox *s =
		sandbox_find(call->dialect->server->box, call->tenant, call->sandbox_id);
	struct error gone;
	error_set(&gone, ERROR_NOT_FOUND, "the sandbox was deleted while it was being created");
	if (!s || e || !call->req) {
		fail(call, s, e ? e : &gone);
	} else if (call->create.argv) {
		start_command(call, s);
	} else {
		respond_created(call, s, NULL);
		call_free(call);
	}
}

static void home_made(void *arg, const struct file_result *result, const struct error *e)
{
	struct create_call *call = arg;
	struct sandbox *s =
		sandbox_find(call->dialect->server->box, call->tenant, call->sandbox_id);
	(void)result;
	if (e || !s || call->create.file_count == 0)
		files_written(call, e);
	else
		files_write(s, &(struct files_owner){0}, call->create.files,
			call->create.file_count, files_written, call);
}

static void home_entry(void *arg, const struct file_entry *entry)
{
	(void)arg;
	(void)entry;
}

static void created(void *arg, struct sandbox *s, const struct error *e)
{
	static const struct file_events events = {.entry = home_entry, .done = home_made};
	struct create_call *call = arg;
	struct sandbox_view view;
	struct error failure = {0};
	if (!s) {
		fail(call, NULL, e);
		return;
	}
	sandbox_view(s, &view);
	memcpy(call->sandbox_id, view.id, ID_SIZE);
	if (agentuity_make_home(s, &events, call, &failure) < 0)
		fail(call, s, &failure);
}

static struct snapshot *find_snapshot(const struct http_request *req, const char *ref)
{
	char id[ID_SIZE];
	bool is_id = agentuity_parse_id(ref, "snp_", id);
	struct box *b = server_of(req)->box;
	struct snapshot *s = is_id ? snapshot_find(b, tenant_of(req), id) : NULL;
	return s ? s : snapshot_find(b, tenant_of(req), ref);
}

static void handle_create(struct http_request *req)
{
	struct error e = {0};
	struct sandbox_spec spec = {.tenant = tenant_of(req)};
	cJSON *body = agentuity_body(req);
	if (!body)
		return;
	struct create_call *call = calloc(1, sizeof *call);
	if (!call || !(call->tenant = strdup(spec.tenant)))
		abort();
	call->req = req;
	call->dialect = agentuity_of(req);
	call->body = body;
	if (agentuity_decode_create(body, &call->memory, &spec, &call->create, &e) < 0) {
		fail(call, NULL, &e);
		return;
	}
	if (spec.snapshot && !find_snapshot(req, spec.snapshot)) {
		agentuity_respond_no_snapshot(req, spec.snapshot);
		call_free(call);
		return;
	}
	if (spec.snapshot && strncmp(spec.snapshot, "snp_", 4) == 0)
		spec.snapshot += 4;
	if (!sandbox_create(call->dialect->server->box, &spec, created, call, &e)) {
		fail(call, NULL, &e);
		return;
	}
	http_on_abort(req, create_aborted, call);
}

/* ---- get ---- */

static void respond_missing(struct http_request *req)
{
	agentuity_respond_failure(req, 200, "SANDBOX_NOT_FOUND", "there is no such sandbox");
}

/* One that was made for a command tells about that, too. */
struct get_call {
	struct http_request *req; /* NULL once the client has gone */
	struct buf body;
	struct json_writer w;
};

static void get_aborted(void *arg)
{
	((struct get_call *)arg)->req = NULL;
}

static void get_end(struct get_call *call)
{
	json_end_object(&call->w);
	if (call->req)
		agentuity_respond_data(call->req, 200, &call->w);
	buf_finish(&call->body);
	free(call);
}

static void put_run(struct get_call *call, const struct execution_view *view)
{
	struct json_writer *w = &call->w;
	if (!call->req)
		return;
	json_key(w, "command");
	json_begin_object(w);
	agentuity_put_list(w, "exec", view->command, view->command_len);
	json_put_string(w, "mode", "oneshot");
	json_end_object(w);
	if (view->status > EXECUTION_RUNNING)
		json_put_int(w, "exitCode", view->exit_code);
	agentuity_put_stream_urls(w, call->req, view->id);
}

static void run_found(void *arg, const struct execution_view *view)
{
	if (view)
		put_run(arg, view);
	else
		get_end(arg);
}

static struct execution *running(struct http_request *req, const char *id)
{
	struct sandbox *s = sandbox_find(server_of(req)->box, tenant_of(req), id);
	return s ? execution_first(s) : NULL;
}

static void put_run_of(struct get_call *call, const char *sandbox_id)
{
	struct execution_view view;
	struct http_request *req = call->req;
	const struct execution *x = running(req, sandbox_id);
	if (x) {
		execution_view(x, &view);
		put_run(call, &view);
		get_end(call);
		return;
	}
	http_on_abort(req, get_aborted, call);
	const struct execution_filter filter = {.tenant = tenant_of(req),
		.sandbox_id = sandbox_id,
		.kinds = 1u << EXECUTION_COMMAND,
		.limit = 1};
	execution_list_ended(server_of(req)->box, &filter, run_found, call);
}

static void respond_sandbox(struct http_request *req, const struct sandbox_view *view)
{
	const char *deleted = http_query(req, "includeDeleted");
	bool hidden = view && view->status == SANDBOX_DELETED &&
		      !(deleted && strcmp(deleted, "true") == 0);
	if (!view || hidden) {
		respond_missing(req);
		return;
	}
	struct get_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->w.out = &call->body;
	agentuity_begin_data(&call->w);
	json_begin_object(&call->w);
	agentuity_put_sandbox_fields(&call->w, view);
	if (view->ephemeral)
		put_run_of(call, view->id);
	else
		get_end(call);
}

/* Whether a word of ?waitForStatus=a,b is its status. */
static bool is_awaited(const struct http_request *req, const struct sandbox_view *view)
{
	const char *words = http_query(req, "waitForStatus");
	const char *status = agentuity_status(view);
	size_t len = strlen(status);
	if (!words)
		return true;
	for (const char *p = words;; p++) {
		size_t n = strcspn(p, ",");
		if (n == len && strncmp(p, status, n) == 0)
			return true;
		p += n;
		if (!*p)
			return false;
	}
}

static void view_or_wait(struct http_request *req, waiting_viewed_fn *then)
{
	struct error e;
	int64_t ms;
	char id[ID_SIZE];
	if (agentuity_query_wait(req, &ms, &e) < 0)
		http_respond_error(req, &e);
	else if (!agentuity_parse_id(http_param(req, "id"), "sbx_", id))
		respond_missing(req);
	else
		waiting_for_sandbox(req, id, ms, is_awaited, then);
}

static void handle_get(struct http_request *req)
{
	view_or_wait(req, respond_sandbox);
}

/* ---- status ---- */

struct status_call {
	struct http_request *req; /* NULL once the client has gone */
	char id[ID_SIZE];
	const char *status;
	bool has_exit;
	int exit_code;
};

static void put_status(
	struct http_request *req, const char *id, const char *status, const int *code)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	agentuity_begin_data(&w);
	json_begin_object(&w);
	agentuity_put_id(&w, "sandboxId", "sbx_", id);
	json_put_string(&w, "status", status);
	if (code)
		json_put_int(&w, "exitCode", *code);
	json_end_object(&w);
	agentuity_respond_data(req, 200, &w);
}

static void status_aborted(void *arg)
{
	((struct status_call *)arg)->req = NULL;
}

static void exit_found(void *arg, const struct execution_view *view)
{
	struct status_call *call = arg;
	if (view) {
		call->has_exit = true;
		call->exit_code = view->exit_code;
		return;
	}
	if (call->req)
		put_status(call->req, call->id, call->status,
			call->has_exit ? &call->exit_code : NULL);
	free(call);
}

/* One that has ended with its command says how that ended. */
static void respond_status(struct http_request *req, const struct sandbox_view *view)
{
	if (!view) {
		respond_missing(req);
		return;
	}
	if (!view->ephemeral || view->status != SANDBOX_TERMINATED) {
		put_status(req, view->id, agentuity_status(view), NULL);
		return;
	}
	struct status_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->status = agentuity_status(view);
	memcpy(call->id, view->id, ID_SIZE);
	http_on_abort(req, status_aborted, call);
	const struct execution_filter filter = {
		.tenant = tenant_of(req), .sandbox_id = call->id, .limit = 1};
	execution_list_ended(server_of(req)->box, &filter, exit_found, call);
}

static void handle_status(struct http_request *req)
{
	view_or_wait(req, respond_status);
}

/* ---- delete ---- */

static void destroyed(void *arg)
{
	agentuity_succeed(arg, NULL);
}

static void handle_delete(struct http_request *req)
{
	struct sandbox *s = agentuity_sandbox(req);
	if (s)
		sandbox_destroy(s, destroyed, agentuity_call_new(req, s));
}

static const struct http_route routes[] = {
	{HTTP_POST, "", handle_create, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/status/{id}", handle_status, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/{id}", handle_get, AGENTUITY_BODY_LIMIT},
	{HTTP_DELETE, "/{id}", handle_delete, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_sandbox_table = ROUTE_TABLE(routes);
