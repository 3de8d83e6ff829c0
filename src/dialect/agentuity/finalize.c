/*
 * POST /sandbox/snapshots/{id}/finalize: the build's disk becomes a snapshot, with variables for
 * those that are made of it, and with packages if it wants some (op/become.c).
 *
 * The build is looked at first, for the note that says what the snapshot is to be called.
 */
#include <string.h>

#include "answer/json_body.h"
#include "dialect/agentuity/builds.h"
#include "dialect/agentuity/create.h"
#include "dialect/agentuity/snapshots.h"
#include "op/life.h"
#include "op/snapshots.h"

#define SETTINGS_MAX (16 * 1024)

/* ---- what is asked for ---- */

struct finalize_body {
	const cJSON *dependencies, *packages, *env, *metadata;
};

struct build_note {
	const char *name, *tag, *description;
};

static const struct json_field body_fields[] = {
	{"dependencies", FIELD_ARRAY, offsetof(struct finalize_body, dependencies), 0, 0, 200},
	{"packages", FIELD_ARRAY, offsetof(struct finalize_body, packages), 0, 0, 200},
	{"env", FIELD_STRING_MAP, offsetof(struct finalize_body, env), 0, 0, 1000},
	{"metadata", FIELD_STRING_MAP, offsetof(struct finalize_body, metadata), 0, 0, 1000},
};

static const struct json_field note_fields[] = {
	{"name", FIELD_TEXT, offsetof(struct build_note, name), 0, 0, 128},
	{"tag", FIELD_TEXT, offsetof(struct build_note, tag), 0, 0, 128},
	{"description", FIELD_TEXT, offsetof(struct build_note, description), 0, 0, 1024},
};

static int check_env_size(const char *const *env, struct error *e)
{
	size_t size = 0;
	for (; env && *env; env++)
		size += strlen(*env) + 1;
	return size > SETTINGS_MAX ? error_set_field(e, ERROR_INVALID_FIELD, "env",
					     "\"env\" has more than %d bytes", SETTINGS_MAX)
				   : 0;
}

/* What the build's metadata says of it. */
static int finalize_decode_note(
	struct answer *a, const char *metadata, struct snapshot_spec *ret, struct error *e)
{
	struct build_note note = {0};
	const cJSON *tree = answer_parse_json(a, metadata, strlen(metadata), e);
	const cJSON *mark = cJSON_GetObjectItemCaseSensitive(tree, BUILD_MARK);
	if (!tree || json_decode_known(mark, note_fields, ARRAY_LEN(note_fields), "", &note, e) < 0)
		return -1;
	ret->name = note.name;
	ret->tag = note.tag;
	ret->description = note.description;
	return 0;
}

static int finalize_decode(struct answer *a, struct op_become_snapshot *ret, struct error *e)
{
	struct finalize_body body = {0};
	struct scratch *memory = &a->call.memory;
	const cJSON *tree = answer_json(a, e);
	if (!tree ||
		json_decode_known(tree, body_fields, ARRAY_LEN(body_fields), "", &body, e) < 0 ||
		json_environment(body.env, "env", memory, &ret->spec.env, e) < 0 ||
		check_env_size(ret->spec.env, e) < 0 ||
		json_text(body.metadata, "metadata", SETTINGS_MAX, memory, &ret->spec.metadata, e) <
			0 ||
		agentuity_decode_names(
			body.dependencies, "dependencies", memory, &ret->dependencies, e) < 0)
		return -1;
	return agentuity_decode_names(body.packages, "packages", memory, &ret->packages, e);
}

/* ---- the route ---- */

struct finalize {
	bool begun; /* the build was found, and becomes a snapshot */
};

static int finalize_begin(struct answer *a, const struct sandbox_view *build, struct error *e)
{
	struct op_become_snapshot request = {
		.spec.measure = true, .home = AGENTUITY_HOME, .lease_ms = BUILD_LIFE_MS};
	if (finalize_decode(a, &request, e) < 0 ||
		finalize_decode_note(a, build->metadata, &request.spec, e) < 0)
		return -1;
	((struct finalize *)a->own)->begun = true;
	a->op = op_become_snapshot(&a->call, &request);
	a->call.memory = (struct scratch){0}; /* the operation's */
	return 0;
}

static int finalize_put(struct answer *a, const struct op_event *event, struct error *e)
{
	if (!((struct finalize *)a->own)->begun)
		return finalize_begin(a, event->sandbox, e);
	return answer_put_record(a, event, e);
}

static void handle_finalize(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct finalize),
		.put = finalize_put,
		.records = &agentuity_snapshot_records,
		.fail = build_fail};
	struct answer *a =
		build_answer(req, &form, agentuity_bare_id(http_param(req, "snapshot"), "snp_"));
	a->op = op_get(&a->call, &(struct op_get){0});
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/snapshots/{snapshot}/finalize", handle_finalize, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_finalize_table = ROUTE_TABLE(routes);
