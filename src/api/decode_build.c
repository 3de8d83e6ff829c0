#include "api/decode_build.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/decode.h"
#include "base/cleanup.h"

#define STEPS_MAX       500
#define LIST_MAX        1000
#define PATH_LEN_MAX    4095
#define DURATION_MAX_MS (INT64_C(24) * 3600 * 1000)

struct build_body {
	const char *name, *description, *from, *ready;
	const cJSON *tags, *steps, *start, *entrypoint, *command, *ports, *resources, *network;
	int64_t ready_timeout, timeout;
	bool no_cache;
};

#define AT(type, member) offsetof(struct type, member)

static const struct json_field build_fields[] = {
	{"name", FIELD_TEXT, AT(build_body, name), FIELD_REQUIRED | FIELD_NOT_EMPTY, 0,
		TEMPLATE_REF_MAX},
	{"description", FIELD_TEXT, AT(build_body, description), 0, 0, 1024},
	{"tags", FIELD_ARRAY, AT(build_body, tags), FIELD_NOT_EMPTY, 0, 100},
	{"from", FIELD_TEXT, AT(build_body, from), FIELD_NOT_EMPTY, 0, TEMPLATE_REF_MAX},
	{"steps", FIELD_ARRAY, AT(build_body, steps), 0, 0, STEPS_MAX},
	{"start", FIELD_ANY, AT(build_body, start), 0, 0, 0},
	{"ready", FIELD_TEXT, AT(build_body, ready), FIELD_NOT_EMPTY, 0, 65536},
	{"readyTimeout", FIELD_DURATION, AT(build_body, ready_timeout), 0, 1, 3600 * 1000},
	{"entrypoint", FIELD_ARRAY, AT(build_body, entrypoint), 0, 0, LIST_MAX},
	{"command", FIELD_ARRAY, AT(build_body, command), 0, 0, LIST_MAX},
	{"ports", FIELD_ARRAY, AT(build_body, ports), 0, 0, LIST_MAX},
	{"resources", FIELD_OBJECT, AT(build_body, resources), 0, 0, 0},
	{"network", FIELD_OBJECT, AT(build_body, network), 0, 0, 0},
	{"timeout", FIELD_DURATION, AT(build_body, timeout), 0, 1000, DURATION_MAX_MS},
	{"noCache", FIELD_BOOL, AT(build_body, no_cache), 0, 0, 0},
};

static const struct json_field resource_fields[] = {
	{"memory", FIELD_BYTES, AT(build_new, memory), 0, 16 << 20, INT64_C(1) << 46},
	{"cpu", FIELD_CPU, AT(build_new, cpu), 0, 10, 1024000},
};

struct step_body {
	const cJSON *run, *env, *copy;
	const char *workdir, *setuser, *user;
	bool force;
};

static const struct json_field step_fields[] = {
	{"run", FIELD_ANY, AT(step_body, run), 0, 0, 0},
	{"copy", FIELD_OBJECT, AT(step_body, copy), 0, 0, 0},
	{"env", FIELD_STRING_MAP, AT(step_body, env), 0, 0, LIST_MAX},
	{"workdir", FIELD_TEXT, AT(step_body, workdir), FIELD_NOT_EMPTY, 0, PATH_LEN_MAX},
	{"setUser", FIELD_TEXT, AT(step_body, setuser), FIELD_NOT_EMPTY, 0, 63},
	{"user", FIELD_TEXT, AT(step_body, user), FIELD_NOT_EMPTY, 0, 63},
	{"force", FIELD_BOOL, AT(step_body, force), 0, 0, 0},
};

struct copy_body {
	const char *context, *source, *path, *owner, *mode;
};

static const struct json_field copy_fields[] = {
	{"context", FIELD_TEXT, AT(copy_body, context), FIELD_REQUIRED, 0, CONTEXT_HASH_LEN},
	{"source", FIELD_TEXT, AT(copy_body, source), 0, 0, PATH_LEN_MAX},
	{"path", FIELD_TEXT, AT(copy_body, path), FIELD_REQUIRED | FIELD_NOT_EMPTY, 0,
		PATH_LEN_MAX},
	{"owner", FIELD_TEXT, AT(copy_body, owner), FIELD_NOT_EMPTY, 0, 127},
	{"mode", FIELD_TEXT, AT(copy_body, mode), FIELD_NOT_EMPTY, 0, 4},
};

/* ---- lists ---- */

int decode_strings(const cJSON *list, const char *field, struct scratch *memory,
	const char *const **ret, struct error *e)
{
	if (!list)
		return 0;
	const char **strings =
		scratch_alloc(memory, ((size_t)cJSON_GetArraySize(list) + 1) * sizeof *strings);
	const cJSON *item;
	size_t n = 0;
	cJSON_ArrayForEach(item, list)
	{
		if (!cJSON_IsString(item))
			return error_set_field(e, ERROR_INVALID_FIELD, field,
				"\"%s\" must be a list of strings", field);
		strings[n++] = item->valuestring;
	}
	*ret = strings;
	return 0;
}

/* A line for the shell, or the arguments themselves. */
static int decode_build_decode_command(const cJSON *item, const char *field, struct scratch *memory,
	const char *const **ret, struct error *e)
{
	if (cJSON_IsString(item) && item->valuestring[0]) {
		const char **argv = scratch_alloc(memory, 4 * sizeof *argv);
		argv[0] = "/bin/sh";
		argv[1] = "-c";
		argv[2] = item->valuestring;
		*ret = argv;
		return 0;
	}
	if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) == 0)
		return error_set_field(e, ERROR_INVALID_FIELD, field,
			"\"%s\" must be a shell line or a list of arguments", field);
	return decode_strings(item, field, memory, ret, e);
}

/* ---- steps ---- */

static int decode_copy(const cJSON *item, const char *path, struct build_step *ret, struct error *e)
{
	struct copy_body body = {0};
	char *end;
	if (json_decode(item, copy_fields, ARRAY_LEN(copy_fields), path, &body, e) < 0)
		return -1;
	ret->kind = BUILD_COPY;
	ret->context = body.context;
	ret->source = body.source;
	ret->path = body.path;
	ret->user = body.owner;
	if (!body.mode)
		return 0;
	ret->mode = (int)strtol(body.mode, &end, 8);
	if (*end || ret->mode < 0)
		return error_set_field(e, ERROR_INVALID_FIELD, path,
			"\"%smode\" must be octal digits, such as \"0755\"", path);
	return 0;
}

static int decode_step(const cJSON *item, size_t index, struct scratch *memory,
	struct build_step *ret, struct error *e)
{
	struct step_body body = {0};
	char path[32];
	snprintf(path, sizeof path, "steps[%zu].", index);
	if (json_decode(item, step_fields, ARRAY_LEN(step_fields), path, &body, e) < 0)
		return -1;
	*ret = (struct build_step){.mode = -1, .force = body.force, .user = body.user};
	int kinds = !!body.run + !!body.copy + (body.env && !body.run) + !!body.workdir +
		    !!body.setuser;
	if (kinds != 1 || (body.user && !body.run))
		return error_set_field(e, ERROR_INVALID_FIELD, path,
			"a step is one of run, copy, env, workdir and setUser; only run can have a user and an env of its own");
	if (json_environment(body.env, path, memory, &ret->env, e) < 0)
		return -1;
	if (body.run) {
		ret->kind = BUILD_RUN;
		return decode_build_decode_command(body.run, "run", memory, &ret->argv, e);
	}
	if (body.copy) {
		char inner[64];
		snprintf(inner, sizeof inner, "%scopy.", path);
		return decode_copy(body.copy, inner, ret, e);
	}
	ret->kind = body.env ? BUILD_ENV : body.workdir ? BUILD_WORKDIR : BUILD_USER;
	ret->path = body.workdir;
	ret->user = body.setuser;
	return 0;
}

static int decode_steps(
	const cJSON *list, struct scratch *memory, struct build_spec *ret, struct error *e)
{
	const cJSON *item;
	struct build_step *steps =
		scratch_alloc(memory, ((size_t)cJSON_GetArraySize(list) + 1) * sizeof *steps);
	cJSON_ArrayForEach(item, list)
	{
		if (!cJSON_IsObject(item))
			return error_set_field(e, ERROR_INVALID_FIELD, "steps",
				"\"steps\" must be a list of objects");
		if (decode_step(item, ret->step_count, memory, &steps[ret->step_count], e) < 0)
			return -1;
		ret->step_count++;
	}
	ret->steps = steps;
	return 0;
}

/* "name:tag" is the name and its only tag. */
int decode_template_name(
	const char *text, struct scratch *memory, struct build_new *ret, struct error *e)
{
	char *name = scratch_alloc(memory, TEMPLATE_NAME_MAX + 1);
	char *tag = scratch_alloc(memory, TEMPLATE_TAG_MAX + 1);
	const char **tags = scratch_alloc(memory, 2 * sizeof *tags);
	if (template_split(text, name, tag, e) < 0) {
		snprintf(e->field, sizeof e->field, "name");
		return -1;
	}
	ret->name = name;
	tags[0] = tag;
	if (tag[0])
		ret->tags = tags;
	return 0;
}

/* Errors name the object's members as those of a create do. */
static int decode_build_network(
	const cJSON *object, struct scratch *memory, struct build_spec *ret, struct error *e)
{
	if (!object)
		return 0;
	struct network_settings *network = scratch_alloc(memory, sizeof *network);
	ret->network = network;
	if (decode_network(object, memory, network, e) == 0)
		return 0;
	if (e->field[0] && strncmp(e->field, "network.", 8) != 0) {
		struct error inner = *e;
		snprintf(e->field, sizeof e->field, "network.%.*s", (int)(sizeof e->field - 9),
			inner.field);
	}
	return -1;
}

int decode_build(const cJSON *body, struct scratch *memory, struct build_new *what,
	struct build_spec *ret, struct error *e)
{
	struct build_body fields = {0};
	if (json_decode(body, build_fields, ARRAY_LEN(build_fields), "", &fields, e) < 0 ||
		decode_template_name(fields.name, memory, what, e) < 0)
		return -1;
	what->description = fields.description;
	if (fields.resources && json_decode(fields.resources, resource_fields,
					ARRAY_LEN(resource_fields), "resources.", what, e) < 0)
		return -1;
	ret->from = fields.from;
	ret->ready = fields.ready;
	ret->ready_timeout_ms = fields.ready_timeout;
	ret->timeout_ms = fields.timeout;
	ret->no_cache = fields.no_cache;
	if (fields.start &&
		decode_build_decode_command(fields.start, "start", memory, &ret->start, e) < 0)
		return -1;
	if (fields.ready && !fields.start)
		return error_set_field(
			e, ERROR_INVALID_FIELD, "ready", "\"ready\" needs a \"start\" to wait for");
	if (decode_build_network(fields.network, memory, ret, e) < 0 ||
		decode_strings(fields.tags, "tags", memory, &what->tags, e) < 0 ||
		decode_strings(fields.entrypoint, "entrypoint", memory, &ret->entrypoint, e) < 0 ||
		decode_strings(fields.command, "command", memory, &ret->command, e) < 0 ||
		decode_strings(fields.ports, "ports", memory, &ret->ports, e) < 0)
		return -1;
	return fields.steps ? decode_steps(fields.steps, memory, ret, e) : 0;
}
