/* /v1/templates: the catalogue, tags, deletion. */
#include "answer/json_body.h"
#include "answer/records.h"
#include "api/templates.h"
#include "op/template.h"

/* ---- as JSON ---- */

static void build_put_tags(struct json_writer *w, const struct field *f, const void *record)
{
	(void)f;
	json_key(w, "tags");
	json_begin_array(w);
	for (const char *const *tag = ((const struct build_view *)record)->tags; *tag; tag++)
		json_string(w, *tag);
	json_end_array(w);
}

void encode_build(struct json_writer *w, const struct build_view *v)
{
	json_encode_object(w, &build_model, v, build_put_tags);
}

static const struct answer_records build_records = {.table = &build_model, .own = build_put_tags};
const struct answer_form build_form = {ANSWER_RECORD(&build_records)};

static void template_put_tags(struct json_writer *w, const struct field *f, const void *record)
{
	const struct template_view *v = record;
	(void)f;
	json_key(w, "tags");
	json_begin_array(w);
	for (size_t i = 0; i < v->tag_count; i++)
		json_encode_object(w, &tag_model, &v->tags[i], NULL);
	json_end_array(w);
}

/* ---- list, get ---- */

static void api_templates_handle_template_list(struct http_request *req)
{
	static const struct answer_records records = {
		.table = &template_model, .own = template_put_tags, .list = "templates"};
	static const struct answer_form form = {ANSWER_LIST(&records)};
	struct answer *a = api_answer(req, &form);
	a->op = op_template_list(&a->call);
	answer_run(a);
}

static void template_put_builds(
	struct answer *a, struct json_writer *w, const struct op_event *event)
{
	const struct template_view *v = event->template;
	(void)a;
	json_key(w, "builds");
	json_begin_array(w);
	for (size_t i = 0; i < v->build_count; i++)
		encode_build(w, &v->builds[i]);
	json_end_array(w);
}

static void api_templates_handle_template_get(struct http_request *req)
{
	static const struct answer_records records = {
		.table = &template_model, .own = template_put_tags, .rest = template_put_builds};
	static const struct answer_form form = {ANSWER_RECORD(&records)};
	struct answer *a = api_answer(req, &form);
	a->op = op_template_get(&a->call, http_param(req, "template"));
	answer_run(a);
}

static int template_resolve_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer *w = a->own;
	(void)e;
	if (event->kind == OP_ROW) {
		w->out = &a->out;
		json_begin_object(w);
		json_encode(w, &template_model, event->template, template_put_tags);
		return 0;
	}
	if (event->build) {
		json_key(w, "build");
		encode_build(w, event->build);
	}
	json_end_object(w);
	return 0;
}

/* Resolves a reference as a create would. */
static void handle_template_resolve(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct json_writer),
		.put = template_resolve_put};
	struct error e;
	const char *ref = http_query(req, "ref");
	struct answer *a = api_answer(req, &form);
	if (!ref) {
		error_set_field(&e, ERROR_MISSING_FIELD, "ref", "\"ref\" is missing");
		answer_refuse(a, &e);
		return;
	}
	a->op = op_template_resolve(&a->call, ref);
	answer_run(a);
}

/* ---- changes ---- */

static const struct answer_form template_changed_form = {.pace = ANSWER_WHOLE};

static struct answer *template_change(struct http_request *req)
{
	struct answer *a = api_answer(req, &template_changed_form);
	a->status = 204;
	return a;
}

static void api_templates_handle_template_delete(struct http_request *req)
{
	struct answer *a = template_change(req);
	a->op = op_template_delete(
		&a->call, &(struct op_template_delete){http_param(req, "template"), false});
	answer_run(a);
}

/* The template and the tag that the path names. */
static struct op_template_tags template_tags_of(struct answer *a)
{
	const char **tags = scratch_alloc(&a->call.memory, 2 * sizeof *tags);
	tags[0] = http_param(a->req, "tag");
	return (struct op_template_tags){.name = http_param(a->req, "template"), .tags = tags};
}

/* {"build"}: an id or tag; without it the build that the name stands for. */
static void handle_template_tag(struct http_request *req)
{
	static const struct json_field fields[] = {{"build", FIELD_TEXT,
		offsetof(struct op_template_tags, target), FIELD_NOT_EMPTY, 0, TEMPLATE_REF_MAX}};
	struct error e = {0};
	struct answer *a = template_change(req);
	struct op_template_tags request = template_tags_of(a);
	const cJSON *body = answer_typed_json(a, &e);
	if (!body || json_decode(body, fields, ARRAY_LEN(fields), "", &request, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_template_tag(&a->call, &request);
	answer_run(a);
}

static void handle_template_untag(struct http_request *req)
{
	struct answer *a = template_change(req);
	struct op_template_tags request = template_tags_of(a);
	a->op = op_template_untag(&a->call, &request);
	answer_run(a);
}

static const struct http_route template_routes[] = {
	{HTTP_GET, "/v1/templates", api_templates_handle_template_list, 0},
	{HTTP_GET, "/v1/templates/resolve", handle_template_resolve, 0},
	{HTTP_GET, "/v1/templates/{template}", api_templates_handle_template_get, 0},
	{HTTP_DELETE, "/v1/templates/{template}", api_templates_handle_template_delete, 0},
	{HTTP_PUT, "/v1/templates/{template}/tags/{tag}", handle_template_tag, SMALL_BODY_LIMIT},
	{HTTP_DELETE, "/v1/templates/{template}/tags/{tag}", handle_template_untag, 0},
};

const struct route_table template_table = ROUTE_TABLE(template_routes);
