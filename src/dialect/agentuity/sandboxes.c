/*
 * POST /sandbox, GET and DELETE /sandbox/{id}, GET /sandbox/status/{id}.
 *
 * A create with a command runs it; with `oneshot` the sandbox ends with it. Either way the command
 * is an execution that can be asked for.
 */
#include <string.h>

#include "answer/json_body.h"
#include "answer/port_token.h"
#include "dialect/agentuity/create.h"
#include "dialect/agentuity/aliases.h"
#include "dialect/agentuity/input.h"
#include "dialect/agentuity/snapshots.h"
#include "model/port.h"
#include "op/life.h"

/* ---- create ---- */

struct create_answer {
	struct agentuity_create create; /* lives as long as the operation */
	const char *snapshot;           /* as it was asked for */
	char execution[ID_SIZE];        /* "": none was started */
};

static int create_note_command(struct answer *a, const struct execution_view *view, struct error *e)
{
	struct create_answer *c = a->own;
	memcpy(c->execution, view->id, ID_SIZE);
	return c->create.stdin_id ? input_attach(agentuity_of(a->req), tenant_of(a->req),
					    c->create.stdin_id, view->id, e)
				  : 0;
}

/* Where the port is seen that is open to everyone, if there is one. */
static void put_url(
	const struct http_request *req, struct json_writer *w, const struct sandbox_view *view)
{
	int64_t port = port_grants_first_open(view->port_grants);
	if (port)
		port_put_url(w, req, view->id, port, "");
}

static int create_put(struct answer *a, const struct op_event *event, struct error *e)
{
	const struct create_answer *c = a->own;
	struct json_writer w = {.out = &a->out};
	if (event->kind == OP_STARTED)
		return create_note_command(a, event->execution, e);
	agentuity_begin_data(&w);
	json_begin_object(&w);
	json_encode_alias(&w, &agentuity_sandbox_state, event->sandbox);
	put_url(a->req, &w, event->sandbox);
	if (c->execution[0]) {
		agentuity_put_id(&w, "executionId", "exe_", c->execution);
		agentuity_put_stream_urls(&w, a->req, c->execution, c->create.ignores);
	}
	json_end_object(&w);
	json_end_object(&w);
	return 0;
}

/* The SDK has a class for a snapshot that is not there. */
static enum answer_failure create_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	const struct create_answer *c = a->own;
	if (!event || e->code != ERROR_NOT_FOUND || strcmp(e->field, "snapshot") != 0)
		return ANSWER_ERROR;
	a->status = 200;
	agentuity_put_no_snapshot(a->req, &a->out, c->snapshot);
	return ANSWER_PUT;
}

static const struct execution_spec *agentuity_sandboxes_create_command(
	const struct agentuity_create *create, struct scratch *memory)
{
	if (!create->argv)
		return NULL;
	struct execution_spec *spec = scratch_alloc(memory, sizeof *spec);
	spec->argv = create->argv;
	spec->open_stdin = create->stdin_id != NULL;
	spec->kind = EXECUTION_COMMAND;
	return spec;
}

/* An id loses its prefix; what is none is a name. */
static const char *create_snapshot(const char *ref)
{
	char id[ID_SIZE];
	bool is_id = ref && agentuity_parse_id(ref, "snp_", id);
	return is_id && strncmp(ref, "snp_", 4) == 0 ? ref + 4 : ref;
}

static void agentuity_sandboxes_handle_create(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct create_answer),
		.put = create_put,
		.fail = create_fail};
	struct error e = {0};
	struct op_create request = {.spec.has_network = true, .home = AGENTUITY_HOME};
	struct answer *a = agentuity_answer(req, &form);
	struct create_answer *c = a->own;
	const cJSON *body = answer_json(a, &e);
	if (!body ||
		agentuity_decode_create(body, &a->call.memory, &request.spec, &c->create, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	c->snapshot = request.spec.snapshot;
	request.spec.snapshot = create_snapshot(c->snapshot);
	request.files = c->create.files;
	request.file_count = c->create.file_count;
	request.command = agentuity_sandboxes_create_command(&c->create, &a->call.memory);
	a->status = 201;
	a->op = op_create(&a->call, &request);
	answer_run(a);
}

/* ---- get ---- */

/* ?waitForStatus=a,b as bits. */
static unsigned parse_statuses(const char *words)
{
	unsigned bits = 0;
	for (const char *p = words; *p; p += *p == ',') {
		size_t len = strcspn(p, ",");
		for (int i = 0; i < SANDBOX_STATUS_COUNT; i++)
			if (strlen(sandbox_status_names[i]) == len &&
				strncmp(p, sandbox_status_names[i], len) == 0)
				bits |= 1u << i;
		p += len;
	}
	return bits;
}

static void get_or_wait(
	struct http_request *req, const struct answer_form *form, bool shows_deleted)
{
	struct error e;
	int64_t ms;
	const char *until = http_query(req, "waitForStatus");
	struct op_get get = {.ended = true, .deleted = shows_deleted, .command = true};
	struct answer *a = agentuity_answer(req, form);
	if (agentuity_query_wait(req, &ms, &e) < 0) {
		a->call.sandbox = NULL; /* it may be there, and have ended */
		answer_refuse(a, &e);
		return;
	}
	if (until) {
		get.wait_ms = ms;
		get.until = parse_statuses(until);
	}
	a->op = op_get(&a->call, &get);
	answer_run(a);
}

/* One that was made for a command tells about that, too. */
static int get_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer *w = a->own;
	(void)e;
	if (event->kind == OP_ROW) {
		w->out = &a->out;
		agentuity_begin_data(w);
		json_begin_object(w);
		json_encode_alias(w, &agentuity_sandbox, event->sandbox);
		put_url(a->req, w, event->sandbox);
	} else if (event->kind == OP_STARTED || event->kind == OP_EXITED) {
		json_encode_alias(w, &agentuity_sandbox_command, event->execution);
		agentuity_put_stream_urls(w, a->req, event->execution->id, NULL);
	} else {
		json_end_object(w);
		json_end_object(w);
	}
	return 0;
}

static void agentuity_sandboxes_handle_get(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct json_writer),
		.put = get_put,
		.fail = agentuity_fail};
	const char *deleted = http_query(req, "includeDeleted");
	get_or_wait(req, &form, deleted && strcmp(deleted, "true") == 0);
}

/* ---- status ---- */

struct status_answer {
	struct json_writer w;
	bool terminated;
};

/* One that has ended with its command says how that ended. */
static int status_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct status_answer *s = a->own;
	(void)e;
	if (event->kind == OP_ROW) {
		s->w.out = &a->out;
		s->terminated = event->sandbox->status == SANDBOX_TERMINATED;
		agentuity_begin_data(&s->w);
		json_begin_object(&s->w);
		json_encode_alias(&s->w, &agentuity_sandbox_state, event->sandbox);
	} else if (event->kind == OP_EXITED && s->terminated) {
		json_put_int(&s->w, "exitCode", event->execution->exit_code);
	} else if (event->kind == OP_DONE) {
		json_end_object(&s->w);
		json_end_object(&s->w);
	}
	return 0;
}

static void agentuity_sandboxes_handle_status(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct status_answer),
		.put = status_put,
		.fail = agentuity_fail};
	get_or_wait(req, &form, true);
}

/* ---- delete ---- */

static void agentuity_sandboxes_handle_delete(struct http_request *req)
{
	struct answer *a = agentuity_answer(req, &agentuity_success_form);
	a->op = op_delete(&a->call);
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_POST, "", agentuity_sandboxes_handle_create, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/status/{id}", agentuity_sandboxes_handle_status, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/{id}", agentuity_sandboxes_handle_get, AGENTUITY_BODY_LIMIT},
	{HTTP_DELETE, "/{id}", agentuity_sandboxes_handle_delete, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_sandbox_table = ROUTE_TABLE(routes);
