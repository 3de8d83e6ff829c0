/* /templates/tags: names for builds that are ready. */
#include <stddef.h>

#include "answer/json_body.h"
#include "dialect/e2b/aliases.h"
#include "dialect/e2b/templates.h"
#include "op/template.h"

#define TAGS_MAX 100

struct tags_body {
	const char *target, *name;
	const cJSON *tags;
};

static const struct json_field assign_fields[] = {
	{"target", FIELD_TEXT, offsetof(struct tags_body, target), FIELD_REQUIRED | FIELD_NOT_EMPTY,
		0, TEMPLATE_REF_MAX},
	{"tags", FIELD_ARRAY, offsetof(struct tags_body, tags), FIELD_REQUIRED | FIELD_NOT_EMPTY, 0,
		TAGS_MAX},
};

static const struct json_field remove_fields[] = {
	{"name", FIELD_TEXT, offsetof(struct tags_body, name), FIELD_REQUIRED | FIELD_NOT_EMPTY, 0,
		TEMPLATE_REF_MAX},
	{"tags", FIELD_ARRAY, offsetof(struct tags_body, tags), FIELD_REQUIRED | FIELD_NOT_EMPTY, 0,
		TAGS_MAX},
};

/* The list as the core has it, NULL-terminated. */
static int tags_decode(
	const cJSON *list, struct scratch *memory, const char *const **ret, struct error *e)
{
	const cJSON *tag;
	size_t n = 0;
	const char **tags =
		scratch_alloc(memory, ((size_t)cJSON_GetArraySize(list) + 1) * sizeof *tags);
	cJSON_ArrayForEach(tag, list)
	{
		if (!cJSON_IsString(tag))
			return error_set_field(
				e, ERROR_INVALID_FIELD, "tags", "\"tags\" must hold strings only");
		if (template_check_tag(tag->valuestring, "tags", e) < 0)
			return -1;
		tags[n++] = e2b_tag_in(tag->valuestring);
	}
	*ret = tags;
	return 0;
}

/* ---- assign ---- */

void e2b_tags_finish(struct answer *a)
{
	buf_finish(a->own);
}

void e2b_tags_put_rest(struct answer *a, struct json_writer *w, const struct op_event *event)
{
	const struct buf *tags = a->own;
	(void)event;
	json_key(w, "tags");
	json_raw_n(w, tags->data, tags->len);
}

static void tags_keep(const cJSON *list, struct buf *out)
{
	const cJSON *tag;
	struct json_writer w = {.out = out};
	json_begin_array(&w);
	cJSON_ArrayForEach(tag, list) json_string(&w, tag->valuestring);
	json_end_array(&w);
}

static void handle_tags_assign(struct http_request *req)
{
	static const struct answer_records records = {
		.aliases = &e2b_build_tagged, .rest = e2b_tags_put_rest};
	static const struct answer_form form = {
		E2B_RECORD(&records), .own_size = sizeof(struct buf), .finish = e2b_tags_finish};
	struct error e = {0};
	struct tags_body fields = {0};
	struct op_template_tags request = {0};
	struct answer *a = answer_new(req, &form);
	struct scratch *memory = &a->call.memory;
	const cJSON *body = answer_json(a, &e);
	if (!body ||
		json_decode_known(body, assign_fields, ARRAY_LEN(assign_fields), "", &fields, &e) <
			0 ||
		tags_decode(fields.tags, memory, &request.tags, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	tags_keep(fields.tags, a->own);
	request.target = e2b_reference_in(fields.target, memory);
	a->status = 201;
	a->op = op_template_tag(&a->call, &request);
	answer_run(a);
}

/* ---- remove, list ---- */

static void handle_tags_remove(struct http_request *req)
{
	struct error e = {0};
	struct tags_body fields = {0};
	struct op_template_tags request = {0};
	struct answer *a = answer_new(req, &e2b_nothing_form);
	const cJSON *body = answer_json(a, &e);
	if (!body ||
		json_decode_known(body, remove_fields, ARRAY_LEN(remove_fields), "", &fields, &e) <
			0 ||
		tags_decode(fields.tags, &a->call.memory, &request.tags, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	request.name = fields.name;
	a->status = 204;
	a->op = op_template_untag(&a->call, &request);
	answer_run(a);
}

static int tags_list_put(struct answer *a, const struct op_event *event, struct error *e)
{
	const struct template_view *v = event->template;
	struct json_writer w = {.out = &a->out};
	(void)e;
	json_begin_array(&w);
	for (size_t i = 0; i < v->tag_count; i++)
		json_encode_alias_object(&w, &e2b_tag, &v->tags[i]);
	json_end_array(&w);
	return 0;
}

static void handle_tags_list(struct http_request *req)
{
	static const struct answer_form form = {
		.type = E2B_JSON, .pace = ANSWER_WHOLE, .put = tags_list_put};
	struct answer *a = answer_new(req, &form);
	a->op = op_template_get(&a->call, http_param(req, "id"));
	answer_run(a);
}

static const struct http_route tag_routes[] = {
	{HTTP_POST, "/templates/tags", handle_tags_assign, E2B_BODY_LIMIT},
	{HTTP_DELETE, "/templates/tags", handle_tags_remove, E2B_BODY_LIMIT},
	{HTTP_GET, "/templates/{id}/tags", handle_tags_list, 0},
};

const struct route_table e2b_tag_table = ROUTE_TABLE(tag_routes);
