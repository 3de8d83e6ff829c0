/*
 * /v1/sandboxes/{id}/export and /v1/sandboxes/import: all that a sandbox has changed, and its
 * variables, as one JSON object, and a sandbox made of such a one.
 */
#include "op/disks.h"

#include <string.h>

#include "api/decode.h"
#include "api/decode_parts.h"
#include "api/encode.h"
#include "api/routes.h"
#include "model/check.h"

#define IMPORT_MAX (UINT64_C(64) << 30)

/* ---- export ---- */

static int portable_parse_path(struct http_request *req, const char **ret, struct error *e)
{
	const char *name, *value;
	*ret = "/";
	for (size_t i = 0; http_query_at(req, i, &name, &value); i++) {
		if (strcmp(name, "path") != 0)
			return error_set_field(
				e, ERROR_UNKNOWN_FIELD, name, "'%.64s' cannot be given here", name);
		if (decode_path(value, "path", true, e) < 0)
			return -1;
		*ret = value;
	}
	return 0;
}

static int portable_put(struct answer *a, const struct op_event *event, struct error *e)
{
	(void)e;
	if (event->kind == OP_DATA)
		answer_put_bytes(a, event->data);
	return 0;
}

static void handle_export_sandbox(struct http_request *req)
{
	static const struct answer_form form = {
		.type = "application/json", .pace = ANSWER_BULK, .put = portable_put};
	struct error e = {0};
	const char *path;
	struct answer *a = api_answer(req, &form);
	if (portable_parse_path(req, &path, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_portable_export(&a->call, path);
	answer_run(a);
}

/* ---- import ---- */

static int portable_check_length(const char *name, const char *value, size_t max, struct error *e)
{
	if (strlen(value) <= max)
		return 0;
	return error_set_field(e, ERROR_INVALID_FIELD, name,
		"\"%s\" must not be longer than %zu bytes", name, max);
}

static int portable_parse_spec(struct http_request *req, struct sandbox_spec *ret, struct error *e)
{
	const struct {
		const char *name;
		const char **value;
		size_t max;
	} known[] = {{"name", &ret->name, 63}, {"template", &ret->template_name, 257},
		{"description", &ret->description, 1024}, {"project", &ret->project, 128}};
	const char *name, *value;
	for (size_t i = 0; http_query_at(req, i, &name, &value); i++) {
		size_t k = 0;
		while (k < ARRAY_LEN(known) && strcmp(known[k].name, name) != 0)
			k++;
		if (k == ARRAY_LEN(known))
			return error_set_field(
				e, ERROR_UNKNOWN_FIELD, name, "'%.64s' cannot be given here", name);
		if (portable_check_length(name, value, known[k].max, e) < 0)
			return -1;
		*known[k].value = value;
	}
	return ret->name ? check_name(ret->name, "name", e) : 0;
}

static int portable_check_type(struct http_request *req, struct error *e)
{
	if (http_has_type(req, "application/json"))
		return 0;
	return error_set(e, ERROR_UNSUPPORTED_MEDIA_TYPE,
		"the body must be JSON, with 'Content-Type: application/json'");
}

static void handle_import_sandbox(struct http_request *req)
{
	struct sandbox_spec spec = {0};
	struct error e = {0};
	struct answer *a = answer_new(req, &api_sandbox_form);
	if (portable_check_type(req, &e) < 0 || portable_parse_spec(req, &spec, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 201;
	a->op = op_portable_import(&a->call, &spec);
	answer_run_with_body(a, &answer_body_file);
}

static const struct http_route portable_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/export", handle_export_sandbox, 0},
	{HTTP_POST, "/v1/sandboxes/import", handle_import_sandbox, IMPORT_MAX,
		.streams_body = true},
};

const struct route_table portable_table = ROUTE_TABLE(portable_routes);
