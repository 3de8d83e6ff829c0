/*
 * Named restore points of one sandbox: POST /sandbox/{id}/checkpoint, GET
 * /sandbox/checkpoints/{id}, and what is done with one of them. Agentuity calls a parent by its
 * name.
 */
#include "box/disk/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "dialect/agentuity/routes.h"

struct create_body {
	const char *name;
};

static const struct json_field create_fields[] = {
	{"name", JSON_STRING, offsetof(struct create_body, name), JSON_REQUIRED | JSON_NOT_EMPTY, 0,
		128},
};

static const char *parent_name(struct sandbox *s, const char *parent)
{
	struct checkpoint_view view;
	struct checkpoint *c = parent[0] ? checkpoint_find(s, parent) : NULL;
	if (!c)
		return "";
	checkpoint_view(c, &view);
	return view.name;
}

static void put_checkpoint(struct json_writer *w, struct sandbox *s, const struct checkpoint *c)
{
	struct checkpoint_view view;
	checkpoint_view(c, &view);
	json_begin_object(w);
	agentuity_put_id(w, "id", "ckpt_", view.id);
	json_put_string(w, "name", view.name);
	json_put_time(w, "createdAt", view.created_ms);
	json_put_string(w, "parent", parent_name(s, view.parent));
	json_end_object(w);
}

static void created(void *arg, struct checkpoint *c, int64_t frozen_us, const struct error *e)
{
	struct sandbox *s;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	(void)frozen_us;
	struct http_request *req = agentuity_call_sandbox(arg, c ? NULL : e, &s);
	if (!req)
		return;
	agentuity_begin_data(&w);
	put_checkpoint(&w, s, c);
	agentuity_respond_data(req, 201, &w);
}

static void handle_create(struct http_request *req)
{
	struct error e;
	struct create_body fields = {0};
	struct sandbox *s = agentuity_sandbox(req);
	cJSON *body = s ? agentuity_body(req) : NULL;
	if (!body)
		return;
	struct agentuity_call *call = agentuity_call_new(req, s);
	if (json_decode_known(body, create_fields, ARRAY_LEN(create_fields), "", &fields, &e) < 0 ||
		checkpoint_create(s, fields.name, created, call, &e) < 0) {
		agentuity_call_end(call);
		http_respond_error(req, &e);
	}
	cJSON_Delete(body);
}

static void handle_list(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct sandbox *s = agentuity_sandbox(req);
	if (!s)
		return;
	agentuity_begin_data(&w);
	json_begin_object(&w);
	json_key(&w, "checkpoints");
	json_begin_array(&w);
	for (struct checkpoint *c = checkpoint_first(s); c; c = checkpoint_next(c))
		put_checkpoint(&w, s, c);
	json_end_array(&w);
	json_end_object(&w);
	agentuity_respond_data(req, 200, &w);
}

/* By its id, or by its name; NULL after the request was answered. */
static struct checkpoint *find(struct http_request *req, struct sandbox *s)
{
	struct error e;
	char id[ID_SIZE];
	const char *text = http_param(req, "checkpoint");
	struct checkpoint *c =
		checkpoint_find(s, agentuity_parse_id(text, "ckpt_", id) ? id : text);
	if (!c) {
		error_set(&e, ERROR_NOT_FOUND, "there is no such checkpoint");
		http_respond_error(req, &e);
	}
	return c;
}

static void handle_restore(struct http_request *req)
{
	struct error e;
	struct sandbox *s = agentuity_sandbox(req);
	struct checkpoint *c = s ? find(req, s) : NULL;
	if (!c)
		return;
	struct agentuity_call *call = agentuity_call_new(req, s);
	if (checkpoint_restore(c, agentuity_succeed, call, &e) < 0) {
		agentuity_call_end(call);
		http_respond_error(req, &e);
	}
}

static void handle_delete(struct http_request *req)
{
	struct sandbox *s = agentuity_sandbox(req);
	struct checkpoint *c = s ? find(req, s) : NULL;
	if (c)
		checkpoint_delete(c, agentuity_succeed, agentuity_call_new(req, s));
}

static const struct http_route routes[] = {
	{HTTP_POST, "/{id}/checkpoint", handle_create, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/checkpoints/{id}", handle_list, AGENTUITY_BODY_LIMIT},
	{HTTP_POST, "/{id}/checkpoint/{checkpoint}/restore", handle_restore, AGENTUITY_BODY_LIMIT},
	{HTTP_DELETE, "/{id}/checkpoint/{checkpoint}", handle_delete, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_checkpoint_table = ROUTE_TABLE(routes);
