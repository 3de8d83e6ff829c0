/* Request bodies that are one JSON object. */
#include "answer/json_body.h"

#include "base/cleanup.h"

static void json_tree_free(void *tree)
{
	cJSON_Delete(tree);
}

const cJSON *answer_parse_json(struct answer *a, const char *text, size_t len, struct error *e)
{
	cJSON *tree = NULL;
	if (json_parse(text, len, &tree, e) < 0)
		return NULL;
	scratch_own(&a->call.memory, tree, json_tree_free);
	return tree;
}

static const cJSON *answer_body_json(struct answer *a, struct error *e)
{
	cJSON *tree = NULL;
	if (http_json(a->req, &tree, e) < 0)
		return NULL;
	scratch_own(&a->call.memory, tree, json_tree_free);
	return tree;
}

const cJSON *answer_json(struct answer *a, struct error *e)
{
	size_t len;
	http_body(a->req, &len);
	const cJSON *tree = len ? answer_body_json(a, e) : answer_parse_json(a, "{}", 2, e);
	if (!tree || cJSON_IsObject(tree))
		return tree;
	error_set(e, ERROR_INVALID_JSON, "the body must be a JSON object");
	return NULL;
}

const cJSON *answer_typed_json(struct answer *a, struct error *e)
{
	size_t len;
	http_body(a->req, &len);
	if (!http_has_type(a->req, "application/json")) {
		error_set(e, ERROR_UNSUPPORTED_MEDIA_TYPE,
			"the body must be JSON, with 'Content-Type: application/json'");
		return NULL;
	}
	if (len > 0)
		return answer_json(a, e);
	error_set(e, ERROR_INVALID_JSON, "the body must be a JSON object");
	return NULL;
}

int answer_decode_json(
	struct answer *a, const struct json_field *fields, size_t count, void *ret, struct error *e)
{
	size_t len;
	http_body(a->req, &len);
	if (len == 0)
		return 0;
	const cJSON *tree = answer_typed_json(a, e);
	return tree ? json_decode(tree, fields, count, "", ret, e) : -1;
}
