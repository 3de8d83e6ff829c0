/* Templates: list, look at, ask for by name, delete. */
#include "dialect/e2b/templates.h"

#include <string.h>

#include "answer/json_body.h"
#include "dialect/e2b/aliases.h"
#include "op/template.h"

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

/* ---- ids of builds ---- */

const char *e2b_build_id_in(const char *id, struct scratch *memory)
{
	char *own = scratch_alloc(memory, ID_SIZE);
	return uuid_to_id(id, own) ? own : id;
}

/* ---- answers ---- */

static const struct answer_records template_records = {.aliases = &e2b_template};

static void e2b_templates_handle_template_list(struct http_request *req)
{
	static const struct answer_form form = {E2B_LIST(&template_records)};
	struct answer *a = answer_new(req, &form);
	a->op = op_template_list(&a->call);
	answer_run(a);
}

static void e2b_templates_handle_template_get(struct http_request *req)
{
	static const struct answer_form form = {E2B_RECORD(&template_records)};
	struct answer *a = answer_new(req, &form);
	a->op = op_template_get(&a->call, http_param(req, "id"));
	answer_run(a);
}

static int template_found_put(struct answer *a, const struct op_event *event, struct error *e)
{
	return event->kind == OP_ROW ? answer_put_record(a, event, e) : 0;
}

/* Whether there is something of this name that sandboxes can begin with. */
static void handle_template_alias(struct http_request *req)
{
	static const struct answer_records records = {.aliases = &e2b_template_found};
	static const struct answer_form form = {.type = E2B_JSON,
		.pace = ANSWER_WHOLE,
		.put = template_found_put,
		.records = &records};
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
