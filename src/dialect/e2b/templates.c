/* Templates: list, look at, ask for by name, delete. */
#include "dialect/e2b/templates.h"

#include <stdlib.h>
#include <string.h>

#include "box/disk/snapshot.h"

#define MIB (1 << 20)

/* ---- names ---- */

const char *e2b_tag_in(const char *tag)
{
	return strcmp(tag, E2B_DEFAULT_TAG) == 0 ? TEMPLATE_LATEST : tag;
}

const char *e2b_tag_out(const char *tag)
{
	return strcmp(tag, TEMPLATE_LATEST) == 0 ? E2B_DEFAULT_TAG : tag;
}

const char *e2b_reference_in(const char *reference, struct scratch *memory)
{
	const char *colon = strrchr(reference, ':');
	if (!colon || strcmp(colon + 1, E2B_DEFAULT_TAG) != 0)
		return reference;
	size_t len = (size_t)(colon - reference);
	char *name = scratch_alloc(memory, len + 1);
	memcpy(name, reference, len);
	return name;
}

struct template *e2b_template(struct http_request *req)
{
	struct error e;
	const char *name = http_param(req, "id");
	struct template *t = template_find(server_of(req)->box, tenant_of(req), name);
	if (!t) {
		error_set(&e, ERROR_TEMPLATE_NOT_FOUND, "template '%.128s' not found", name);
		http_respond_error(req, &e);
	}
	return t;
}

/* ---- answers ---- */

static void put_names(struct json_writer *w, const char *key, const char *name)
{
	json_key(w, key);
	json_begin_array(w);
	json_string(w, name);
	json_end_array(w);
}

static const char *status_of(const struct template_view *view, const struct build_view *newest)
{
	static const char *const names[BUILD_STATUS_COUNT] = {
		"waiting", "building", "ready", "error", "error"};
	return view->newest ? names[newest->status] : "ready";
}

static void put_template(struct json_writer *w, const struct server *d, const struct template *t)
{
	struct template_view view;
	struct build_view newest = {0};
	const struct resources *defaults = &box_config(d->box)->defaults;
	template_view(t, &view);
	if (view.newest)
		build_view(view.newest, &newest);
	int64_t cpu = newest.config.cpu ? newest.config.cpu : defaults->cpu;
	int64_t memory = newest.config.memory ? newest.config.memory : defaults->memory;
	json_begin_object(w);
	json_put_string(w, "templateID", view.id);
	json_put_string(w, "buildID", view.newest ? newest.id : "");
	json_put_int(w, "cpuCount", (cpu + 999) / 1000);
	json_put_int(w, "memoryMB", memory / MIB);
	json_put_int(w, "diskSizeMB", defaults->disk / MIB);
	json_put_bool(w, "public", view.built_in);
	put_names(w, "aliases", view.name);
	put_names(w, "names", view.name);
	json_put_string(w, "buildStatus", status_of(&view, &newest));
	json_put_time(w, "createdAt", view.created_ms);
	json_put_time(w, "updatedAt", newest.ended_ms ? newest.ended_ms : view.created_ms);
	json_put_string(w, "envdVersion", E2B_ENVD_VERSION);
	json_end_object(w);
}

static void handle_list(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	const struct server *d = server_of(req);
	json_begin_array(&w);
	for (struct template *t = template_first(d->box, tenant_of(req)); t;
		t = template_next(t, tenant_of(req)))
		put_template(&w, d, t);
	json_end_array(&w);
	e2b_respond_json(req, 200, &body);
}

static void handle_get(struct http_request *req)
{
	struct template *t = e2b_template(req);
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	if (!t)
		return;
	put_template(&w, server_of(req), t);
	e2b_respond_json(req, 200, &body);
}

/* Whether there is something of this name that sandboxes can begin with. */
static void handle_alias(struct http_request *req)
{
	struct error e = {0};
	autoscratch memory = {0};
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct template *t;
	struct build *build;
	struct template_view view;
	const char *name = e2b_reference_in(http_param(req, "alias"), &memory);
	if (template_resolve(server_of(req)->box, tenant_of(req), name, &t, &build, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	template_view(t, &view);
	json_begin_object(&w);
	json_put_string(&w, "templateID", view.id);
	json_put_bool(&w, "public", view.built_in);
	json_end_object(&w);
	e2b_respond_json(req, 200, &body);
}

/* ---- what takes a moment ---- */

struct template_call {
	struct http_request *req; /* NULL once the client has gone */
	int status;
};

static void call_aborted(void *arg)
{
	((struct template_call *)arg)->req = NULL;
}

static void call_done(void *arg, const struct error *e)
{
	struct template_call *call = arg;
	if (call->req && e)
		http_respond_error(call->req, e);
	else if (call->req)
		e2b_respond_nothing(call->req, call->status);
	free(call);
}

template_done_fn *e2b_template_done(struct http_request *req, int status, void **arg)
{
	struct template_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	*call = (struct template_call){req, status};
	http_on_abort(req, call_aborted, call);
	*arg = call;
	return call_done;
}

/* A template, or a snapshot: clients delete both by this. */
static void handle_delete(struct http_request *req)
{
	struct error e = {0};
	autoscratch memory = {0};
	void *arg;
	struct box *b = server_of(req)->box;
	const char *name = e2b_reference_in(http_param(req, "id"), &memory);
	struct template *t = template_find(b, tenant_of(req), name);
	struct snapshot *s = t ? NULL : snapshot_find(b, tenant_of(req), name);
	if (!t && !s) {
		error_set(&e, ERROR_TEMPLATE_NOT_FOUND, "template '%.128s' not found", name);
		http_respond_error(req, &e);
		return;
	}
	template_done_fn *done = e2b_template_done(req, 204, &arg);
	int r = t ? template_delete(t, done, arg, &e) : snapshot_delete(s, done, arg, &e);
	if (r < 0)
		done(arg, &e);
}

/* {"public"}: everything here is a tenant's own. */
static void handle_patch(struct http_request *req)
{
	struct error e;
	struct template *t = e2b_template(req);
	cJSON *body = t ? e2b_body(req) : NULL;
	if (!body)
		return;
	bool wants_public = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(body, "public"));
	cJSON_Delete(body);
	if (wants_public) {
		error_set(&e, ERROR_NOT_IMPLEMENTED,
			"\"public\": templates of this server belong to one tenant");
		http_respond_error(req, &e);
		return;
	}
	e2b_respond_nothing(req, 204);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/templates", handle_list, 0},
	{HTTP_GET, "/v2/templates", handle_list, 0},
	{HTTP_GET, "/templates/{id}", handle_get, 0},
	{HTTP_PATCH, "/templates/{id}", handle_patch, E2B_BODY_LIMIT},
	{HTTP_PATCH, "/v2/templates/{id}", handle_patch, E2B_BODY_LIMIT},
	{HTTP_DELETE, "/templates/{id}", handle_delete, 0},
	{HTTP_GET, "/templates/aliases/{alias}", handle_alias, 0},
};

const struct route_table e2b_template_table = ROUTE_TABLE(routes);
