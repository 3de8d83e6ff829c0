/* /volumes: create, list, get, delete. */
#include "dialect/e2b/volumes.h"

#include <stddef.h>

/* ---- answers ---- */

static void put_volume(struct json_writer *w, const struct volume *v)
{
	struct volume_view view;
	volume_view(v, &view);
	json_put_string(w, "volumeID", view.id);
	json_put_string(w, "name", view.name);
}

static void respond_volume(struct http_request *req, int status, const struct volume *v)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct volume_view view;
	char token[AUTH_TOKEN_SIZE];
	volume_view(v, &view);
	e2b_volume_token(server_of(req), view.id, token);
	json_begin_object(&w);
	put_volume(&w, v);
	json_put_string(&w, "token", token);
	json_end_object(&w);
	e2b_respond_json(req, status, &body);
}

static struct volume *path_volume(struct http_request *req)
{
	struct error e;
	const char *name = http_param(req, "volume");
	struct volume *v = volume_find(server_of(req)->box, tenant_of(req), name);
	if (v)
		return v;
	error_set(&e, ERROR_NOT_FOUND, "volume \"%.64s\" not found", name);
	http_respond_error(req, &e);
	return NULL;
}

/* ---- the routes ---- */

static void created(void *arg, struct volume *v, const struct error *e)
{
	if (e)
		http_respond_error(arg, e);
	else
		respond_volume(arg, 201, v);
}

static void handle_create(struct http_request *req)
{
	struct {
		const char *name;
	} fields = {0};
	static const struct json_field table[] = {
		{"name", JSON_STRING, 0, JSON_REQUIRED | JSON_NOT_EMPTY, 0, VOLUME_NAME_MAX},
	};
	struct error e = {0};
	cJSON *body = e2b_body(req);
	if (!body)
		return;
	if (json_decode_known(body, table, ARRAY_LEN(table), "", &fields, &e) < 0 ||
		volume_create(
			server_of(req)->box, tenant_of(req), fields.name, 0, created, req, &e) < 0)
		http_respond_error(req, &e);
	cJSON_Delete(body);
}

static void handle_list(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	json_begin_array(&w);
	for (struct volume *v = volume_first(server_of(req)->box, tenant_of(req)); v;
		v = volume_next(v)) {
		json_begin_object(&w);
		put_volume(&w, v);
		json_end_object(&w);
	}
	json_end_array(&w);
	e2b_respond_json(req, 200, &body);
}

static void handle_get(struct http_request *req)
{
	const struct volume *v = path_volume(req);
	if (v)
		respond_volume(req, 200, v);
}

static void deleted(void *arg, const struct error *e)
{
	if (e)
		http_respond_error(arg, e);
	else
		e2b_respond_nothing(arg, 204);
}

static void handle_delete(struct http_request *req)
{
	struct error e = {0};
	struct volume *v = path_volume(req);
	if (v && volume_delete(v, deleted, req, &e) < 0)
		http_respond_error(req, &e);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/volumes", handle_create, E2B_BODY_LIMIT},
	{HTTP_GET, "/volumes", handle_list, 0},
	{HTTP_GET, "/volumes/{volume}", handle_get, 0},
	{HTTP_DELETE, "/volumes/{volume}", handle_delete, 0},
};

const struct route_table e2b_volume_table = ROUTE_TABLE(routes);
