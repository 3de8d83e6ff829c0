/*
 * POST /v1/templates/imports: a template from an archive, which is the body and is unpacked while
 * it comes. The answer is the build at its end; a client that leaves before that has changed its
 * mind.
 */
#include <string.h>

#include "api/decode_build.h"
#include "api/templates.h"
#include "op/build.h"

#define IMPORT_LIMIT (UINT64_C(1) << 40) /* the builder's disk ends it before */

static int import_parse_format(const char *text, enum import_format *ret, struct error *e)
{
	static const char *const names[] = {[IMPORT_AUTO] = "auto",
		[IMPORT_ROOT] = "root",
		[IMPORT_DOCKER] = "docker",
		[IMPORT_OCI] = "oci"};
	for (size_t i = 0; text && i < ARRAY_LEN(names); i++)
		if (strcmp(text, names[i]) == 0) {
			*ret = (enum import_format)i;
			return 0;
		}
	return !text ? 0
		     : error_set_field(e, ERROR_INVALID_FIELD, "format",
			       "\"format\" is auto, root, docker or oci");
}

static int import_check_query(const struct http_request *req, struct error *e)
{
	static const char *const known[] = {
		"name", "description", "format", "ref", "digest", "origin"};
	const char *name, *value;
	for (size_t i = 0; http_query_at(req, i, &name, &value); i++) {
		bool is_known = false;
		for (size_t k = 0; k < ARRAY_LEN(known); k++)
			is_known |= strcmp(name, known[k]) == 0;
		if (!is_known || strlen(value) > 1024)
			return error_set_field(e,
				is_known ? ERROR_INVALID_FIELD : ERROR_UNKNOWN_FIELD, name,
				"there is no '%.64s', or it is too long", name);
	}
	return 0;
}

static int import_decode(const struct http_request *req, struct scratch *memory,
	struct build_new *what, struct import_spec *spec, struct error *e)
{
	const char *target = http_query(req, "name");
	if (import_check_query(req, e) < 0)
		return -1;
	if (!target)
		return error_set_field(e, ERROR_MISSING_FIELD, "name", "\"name\" is missing");
	what->description = http_query(req, "description");
	spec->ref = http_query(req, "ref");
	spec->digest = http_query(req, "digest");
	spec->origin = http_query(req, "origin");
	if (import_parse_format(http_query(req, "format"), &spec->format, e) < 0)
		return -1;
	return decode_template_name(target, memory, what, e);
}

static void handle_import(struct http_request *req)
{
	struct error e = {0};
	struct build_new what = {0};
	struct import_spec spec = {0};
	struct answer *a = api_answer(req, &build_form);
	if (import_decode(req, &a->call.memory, &what, &spec, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 201;
	a->op = op_build_import(&a->call, &what, &spec);
	answer_run_with_body(a, &answer_body_file);
}

static const struct http_route import_routes[] = {
	{HTTP_POST, "/v1/templates/imports", handle_import, IMPORT_LIMIT, true},
};

const struct route_table import_table = ROUTE_TABLE(import_routes);
