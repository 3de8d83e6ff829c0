/* Templates: list, look at, ask for by name, delete. */
#include "dialect/e2b/templates.h"

#include <string.h>

#include "answer/json_body.h"
#include "op/template.h"

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

/* ---- answers ---- */

static void template_put_names(struct json_writer *w, const char *key, const char *name)
{
	json_key(w, key);
	json_begin_array(w);
	json_string(w, name);
	json_end_array(w);
}

static void template_put(struct json_writer *w, const struct template_view *v)
{
	static const char *const status_names[BUILD_STATUS_COUNT] = {
		"waiting", "building", "ready", "error", "error"};
	const struct build_view *newest = v->build_count ? v->builds : NULL;
	bool has_ended = newest && newest->ended_ms;
	json_begin_object(w);
	json_put_string(w, "templateID", v->id);
	json_put_string(w, "buildID", newest ? newest->id : "");
	json_put_int(w, "cpuCount", (v->resources.cpu + 999) / 1000);
	json_put_int(w, "memoryMB", v->resources.memory / MIB);
	json_put_int(w, "diskSizeMB", v->resources.disk / MIB);
	json_put_bool(w, "public", v->built_in);
	template_put_names(w, "aliases", v->name);
	template_put_names(w, "names", v->name);
	json_put_string(w, "buildStatus", newest ? status_names[newest->status] : "ready");
	json_put_time(w, "createdAt", v->created_ms);
	json_put_time(w, "updatedAt", has_ended ? newest->ended_ms : v->created_ms);
	json_put_string(w, "envdVersion", E2B_ENVD_VERSION);
	json_end_object(w);
}

static int e2b_templates_template_list_put(
	struct answer *a, const struct op_event *event, struct error *e)
{
	(void)e;
	if (event->kind == OP_ROW)
		template_put(a->own, event->template);
	else
		json_end_array(a->own);
	return 0;
}

static void e2b_templates_handle_template_list(struct http_request *req)
{
	static const struct answer_form form = {.type = E2B_JSON,
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct json_writer),
		.put = e2b_templates_template_list_put};
	struct answer *a = answer_new(req, &form);
	struct json_writer *w = a->own;
	w->out = &a->out;
	json_begin_array(w);
	a->op = op_template_list(&a->call);
	answer_run(a);
}

static int e2b_templates_template_get_put(
	struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	template_put(&w, event->template);
	return 0;
}

static void e2b_templates_handle_template_get(struct http_request *req)
{
	static const struct answer_form form = {
		.type = E2B_JSON, .pace = ANSWER_WHOLE, .put = e2b_templates_template_get_put};
	struct answer *a = answer_new(req, &form);
	a->op = op_template_get(&a->call, http_param(req, "id"));
	answer_run(a);
}

static int template_alias_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	if (event->kind != OP_ROW)
		return 0;
	json_begin_object(&w);
	json_put_string(&w, "templateID", event->template->id);
	json_put_bool(&w, "public", event->template->built_in);
	json_end_object(&w);
	return 0;
}

/* Whether there is something of this name that sandboxes can begin with. */
static void handle_template_alias(struct http_request *req)
{
	static const struct answer_form form = {
		.type = E2B_JSON, .pace = ANSWER_WHOLE, .put = template_alias_put};
	struct answer *a = answer_new(req, &form);
	const char *name = e2b_reference_in(http_param(req, "alias"), &a->call.memory);
	a->op = op_template_resolve(&a->call, name);
	answer_run(a);
}

/* ---- changes ---- */

/* A template, or a snapshot: clients delete both by this. */
static void e2b_templates_handle_template_delete(struct http_request *req)
{
	struct answer *a = answer_new(req, &e2b_nothing_form);
	const struct op_template_delete request = {
		.name = e2b_reference_in(http_param(req, "id"), &a->call.memory),
		.or_snapshot = true};
	a->status = 204;
	a->op = op_template_delete(&a->call, &request);
	answer_run(a);
}

/* {"public"}: everything here is a tenant's own. */
static void handle_template_patch(struct http_request *req)
{
	struct error e;
	struct answer *a = answer_new(req, &e2b_nothing_form);
	const cJSON *body = answer_json(a, &e);
	bool wants_public = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(body, "public"));
	if (wants_public)
		error_set(&e, ERROR_NOT_IMPLEMENTED,
			"\"public\": templates of this server belong to one tenant");
	if (!body || wants_public) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 204;
	a->op = op_template_get(&a->call, http_param(req, "id"));
	answer_run(a);
}

static const struct http_route template_routes[] = {
	{HTTP_GET, "/templates", e2b_templates_handle_template_list, 0},
	{HTTP_GET, "/v2/templates", e2b_templates_handle_template_list, 0},
	{HTTP_GET, "/templates/{id}", e2b_templates_handle_template_get, 0},
	{HTTP_PATCH, "/templates/{id}", handle_template_patch, E2B_BODY_LIMIT},
	{HTTP_PATCH, "/v2/templates/{id}", handle_template_patch, E2B_BODY_LIMIT},
	{HTTP_DELETE, "/templates/{id}", e2b_templates_handle_template_delete, 0},
	{HTTP_GET, "/templates/aliases/{alias}", handle_template_alias, 0},
};

const struct route_table e2b_template_table = ROUTE_TABLE(template_routes);
