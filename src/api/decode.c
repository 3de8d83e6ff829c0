/* Bodies about sandboxes: create, run, change. */
#include "api/decode_parts.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/decode_build.h"
#include "base/cleanup.h"
#include "base/units.h"

/* ---- tables ---- */

/* Fields of a create besides the settings of sandbox_model. */
struct create_body {
	const char *snapshot;
	const cJSON *files, *volumes, *dependencies, *packages;
};

static const struct json_field create_fields[] = {
	{"snapshot", FIELD_TEXT, AT(create_body, snapshot), FIELD_NOT_EMPTY, 0, 257},
	{"files", FIELD_ARRAY, AT(create_body, files), 0, 0, FILES_MAX},
	{"volumes", FIELD_ARRAY, AT(create_body, volumes), 0, 0, WARDEN_VOLUMES_MAX},
	{"dependencies", FIELD_ARRAY, AT(create_body, dependencies), 0, 0, 200},
	{"packages", FIELD_ARRAY, AT(create_body, packages), 0, 0, 200},
};

/* A run's env, files and user are its sandbox's. */
static const struct json_field run_fields[] = {
	EXEC_ONLY_FIELDS(exec_body, ){"encoding", FIELD_TEXT, AT(exec_body, encoding), 0, 0, 16},
};

/* A run's timeout may be "30s" as for exec. */
static const struct json_field run_timeout[] = {
	{"timeout", FIELD_ANY, AT(exec_body, timeout), 0, 0, 0},
};

#define SETTINGS(flag, to, given)                                                                  \
	{                                                                                          \
		sandbox_model.fields, NULL, sandbox_model.count, flag, &(to)->settings, given      \
	}

/* ---- whole bodies ---- */

static const struct json_field volume_fields[] = {
	{"volume", FIELD_TEXT, AT(volume_mount, volume), FIELD_REQUIRED | FIELD_NOT_EMPTY, 0, 63},
	{"path", FIELD_TEXT, AT(volume_mount, path), FIELD_REQUIRED | FIELD_NOT_EMPTY, 0, 4095},
	{"readOnly", FIELD_BOOL, AT(volume_mount, read_only), 0, 0, 0},
};

static int decode_volumes(
	const cJSON *array, struct scratch *memory, struct sandbox_spec *ret, struct error *e)
{
	size_t count = array ? (size_t)cJSON_GetArraySize(array) : 0;
	struct volume_mount *mounts = scratch_alloc(memory, (count + 1) * sizeof *mounts);
	const cJSON *item;
	size_t i = 0;
	cJSON_ArrayForEach(item, array)
	{
		char path[32];
		snprintf(path, sizeof path, "volumes[%zu].", i);
		if (!cJSON_IsObject(item))
			return error_set_field(
				e, ERROR_INVALID_FIELD, "volumes", "\"volumes\" must hold objects");
		if (json_decode(
			    item, volume_fields, ARRAY_LEN(volume_fields), path, &mounts[i], e) < 0)
			return -1;
		i++;
	}
	ret->volumes = mounts;
	ret->volume_count = count;
	return 0;
}

static int api_decode_settle_create(const struct create_body *body, struct scratch *memory,
	struct sandbox_spec *ret, struct error *e)
{
	struct file_spec *files = NULL;
	if (decode_strings(body->dependencies, "dependencies", memory, &ret->dependencies, e) < 0 ||
		decode_strings(body->packages, "packages", memory, &ret->packages, e) < 0 ||
		decode_files(body->files, memory, &files, &ret->file_count, e) < 0 ||
		decode_volumes(body->volumes, memory, ret, e) < 0)
		return -1;
	ret->files = files;
	ret->snapshot = body->snapshot;
	return 0;
}

#define GIVES(given, member)                                                                       \
	field_set_has(given, (size_t)field_at(&sandbox_model, AT(sandbox_settings, member)))

/* A list of what is allowed says its mode by itself. */
static int settle_network(const struct field_set *given, struct sandbox_spec *ret, struct error *e)
{
	bool denies = GIVES(given, network.deny), allows = GIVES(given, network.allow);
	ret->has_network = GIVES(given, network.mode) || allows;
	if (GIVES(given, network.mode) || (!denies && !allows))
		return 0;
	if (denies)
		return error_set_field(e, ERROR_MISSING_FIELD, "network.mode",
			"\"network.mode\" is required with \"network.deny\"");
	ret->network.mode = NETWORK_ALLOW;
	return 0;
}

int decode_create(
	const cJSON *body, struct scratch *memory, struct sandbox_spec *ret, struct error *e)
{
	struct create_body fields = {0};
	struct field_set given = {0};
	const struct json_part parts[] = {SETTINGS(FIELD_CREATE, ret, &given),
		{NULL, create_fields, ARRAY_LEN(create_fields), 0, &fields, NULL}, {0}};
	if (json_decode_parts(body, parts, memory, e) < 0)
		return -1;
	if (settle_network(&given, ret, e) < 0)
		return -1;
	return api_decode_settle_create(&fields, memory, ret, e);
}

int decode_run(const cJSON *body, struct scratch *memory, struct sandbox_spec *create,
	struct exec_options *exec, struct error *e)
{
	struct create_body fields = {0};
	struct exec_body command = {0};
	struct field_set given = {0};
	bool is_text = cJSON_IsString(cJSON_GetObjectItemCaseSensitive(body, "timeout"));
	const struct json_part parts[] = {
		{NULL, run_timeout, is_text, 0, &command, NULL},
		SETTINGS(FIELD_CREATE, create, &given),
		{NULL, create_fields, ARRAY_LEN(create_fields), 0, &fields, NULL},
		{NULL, run_fields, ARRAY_LEN(run_fields), 0, &command, NULL},
		{0},
	};
	if (json_decode_parts(body, parts, memory, e) < 0 ||
		(is_text && decode_timeout_text(command.timeout, &create->execution_ms, e) < 0) ||
		api_decode_settle_create(&fields, memory, create, e) < 0 ||
		settle_network(&given, create, e) < 0)
		return -1;
	command.timeout = NULL; /* it is the sandbox's */
	return decode_exec_fields(&command, memory, exec, e);
}

/* ---- changes ---- */

struct change_body {
	const cJSON *env;
};

static const struct json_field change_fields[] = {
	{"env", FIELD_OBJECT, AT(change_body, env), 0, 0, ENV_MAX},
};

int decode_env_change(
	const cJSON *map, struct scratch *memory, struct sandbox_change *ret, struct error *e)
{
	size_t n = 0;
	const cJSON *item;
	if (!map)
		return 0;
	cJSON *values = cJSON_CreateObject();
	const char **unset =
		scratch_alloc(memory, ((size_t)cJSON_GetArraySize(map) + 1) * sizeof *unset);
	int r = values ? 0 : error_set(e, ERROR_INTERNAL, "out of memory");
	cJSON_ArrayForEach(item, map)
	{
		if (cJSON_IsNull(item))
			unset[n++] = item->string;
		else if (cJSON_IsString(item) && r == 0)
			cJSON_AddStringToObject(values, item->string, item->valuestring);
		else if (r == 0)
			r = error_set_field(e, ERROR_INVALID_FIELD, "env",
				"the values of \"env\" must be strings, or null to take one out");
	}
	ret->unset_env = unset;
	r = r < 0 ? r : json_environment(values, "env", memory, &ret->set_env, e);
	cJSON_Delete(values);
	return r;
}

int decode_change(
	const cJSON *body, struct scratch *memory, struct sandbox_change *ret, struct error *e)
{
	struct change_body fields = {0};
	*ret = (struct sandbox_change){0};
	const struct json_part parts[] = {SETTINGS(FIELD_CHANGE, ret, &ret->given),
		{NULL, change_fields, ARRAY_LEN(change_fields), 0, &fields, NULL}, {0}};
	if (json_decode_parts(body, parts, memory, e) < 0)
		return -1;
	return decode_env_change(fields.env, memory, ret, e);
}

int decode_network(
	const cJSON *body, struct scratch *memory, struct network_settings *ret, struct error *e)
{
	const struct json_part parts[] = {
		{network_model.fields, NULL, network_model.count, FIELD_CHANGE, ret, NULL}, {0}};
	*ret = (struct network_settings){0};
	return json_decode_parts(body, parts, memory, e);
}
