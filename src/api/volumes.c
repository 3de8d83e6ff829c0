/* /v1/volumes: create, list, get, delete. */
#include "box/disk/volume.h"

#include <stdlib.h>

#include "api/call.h"
#include "base/units.h"

static void encode_volume(struct json_writer *w, const struct volume *v)
{
	struct volume_view view;
	char size[UNITS_TEXT_SIZE];
	volume_view(v, &view);
	json_begin_object(w);
	json_put_string(w, "id", view.id);
	json_put_string(w, "name", view.name);
	json_put_string(w, "status", view.lost ? "lost" : "ready");
	if (view.limit) { /* 0: this server cannot limit it */
		units_format_size(view.limit, size);
		json_put_string(w, "size", size);
	}
	json_put_int(w, "sandboxes", view.mounts);
	json_put_time(w, "createdAt", view.created_ms);
	json_end_object(w);
}

static void respond_volume(struct http_request *req, int status, const struct volume *v)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	encode_volume(&w, v);
	api_respond_json(req, status, &body);
}

static struct volume *path_volume(struct http_request *req)
{
	struct error e;
	struct volume *v =
		volume_find(server_of(req)->box, tenant_of(req), http_param(req, "volume"));
	if (!v) {
		error_set(&e, ERROR_NOT_FOUND, "there is no such volume");
		http_respond_error(req, &e);
	}
	return v;
}

/* ---- create ---- */

static void created(void *arg, struct volume *v, const struct error *e)
{
	struct api_call *call = arg;
	if (call->req && e)
		http_respond_error(call->req, e);
	else if (call->req)
		respond_volume(call->req, 201, v);
	free(call);
}

struct create_body {
	const char *name;
	int64_t size;
};

static const struct json_field create_fields[] = {
	{"name", JSON_STRING, offsetof(struct create_body, name), JSON_REQUIRED | JSON_NOT_EMPTY, 0,
		VOLUME_NAME_MAX},
	{"size", JSON_SIZE, offsetof(struct create_body, size), 0, 1 << 20, INT64_C(1) << 50},
};

static void handle_create(struct http_request *req)
{
	struct create_body fields = {0};
	struct error e;
	cJSON *body = api_body(req);
	if (!body)
		return;
	if (json_decode(body, create_fields, ARRAY_LEN(create_fields), "", &fields, &e) < 0) {
		http_respond_error(req, &e);
	} else {
		struct api_call *call = api_call_new(req, NULL);
		if (volume_create(server_of(req)->box, tenant_of(req), fields.name, fields.size,
			    created, call, &e) < 0)
			created(call, NULL, &e);
	}
	cJSON_Delete(body);
}

/* ---- list, get, delete ---- */

static void handle_list(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	json_begin_object(&w);
	json_key(&w, "volumes");
	json_begin_array(&w);
	for (struct volume *v = volume_first(server_of(req)->box, tenant_of(req)); v;
		v = volume_next(v))
		encode_volume(&w, v);
	json_end_array(&w);
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

static void handle_get(struct http_request *req)
{
	struct volume *v = path_volume(req);
	if (v)
		respond_volume(req, 200, v);
}

static void handle_delete(struct http_request *req)
{
	struct error e;
	struct volume *v = path_volume(req);
	if (!v)
		return;
	struct api_call *call = api_call_new(req, NULL);
	if (volume_delete(v, api_call_done, call, &e) < 0)
		api_call_done(call, &e);
}

static const struct http_route volume_routes[] = {
	{HTTP_POST, "/v1/volumes", handle_create, SMALL_BODY_LIMIT},
	{HTTP_GET, "/v1/volumes", handle_list, 0},
	{HTTP_GET, "/v1/volumes/{volume}", handle_get, 0},
	{HTTP_DELETE, "/v1/volumes/{volume}", handle_delete, 0},
};

const struct route_table volume_table = ROUTE_TABLE(volume_routes);
