/* Bodies about sandboxes: create, run, change. */
#include "api/decode_parts.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/decode_build.h"
#include "base/cleanup.h"
#include "base/units.h"

#define METADATA_MAX (64 * 1024)

/* ---- tables ---- */

struct create_body {
	const char *template_name, *snapshot, *name, *description, *user, *workdir, *project;
	const cJSON *resources, *env, *files, *timeout, *metadata, *dependencies, *packages,
		*volumes;
	const char *on_idle, *on_lease;
	bool auto_resume;
};

struct run_body {
	struct create_body create;
	struct exec_body exec;
};

#define CREATE_FIELDS(type, in)                                                                    \
	{"template", JSON_STRING, AT(type, in template_name), JSON_NOT_EMPTY, 0, 257},             \
		{"snapshot", JSON_STRING, AT(type, in snapshot), JSON_NOT_EMPTY, 0, 257},          \
		{"name", JSON_STRING, AT(type, in name), 0, 0, 63},                                \
		{"description", JSON_STRING, AT(type, in description), 0, 0, 1024},                \
		{"user", JSON_STRING, AT(type, in user), JSON_NOT_EMPTY, 0, 63},                   \
		{"workdir", JSON_STRING, AT(type, in workdir), JSON_NOT_EMPTY, 0, PATH_LEN_MAX},   \
		{"project", JSON_STRING, AT(type, in project), 0, 0, 128},                         \
		{"resources", JSON_OBJECT, AT(type, in resources), 0, 0, 0},                       \
		{"env", JSON_STRING_MAP, AT(type, in env), 0, 0, ENV_MAX},                         \
		{"files", JSON_ARRAY, AT(type, in files), 0, 0, FILES_MAX},                        \
		{"timeout", JSON_ANY, AT(type, in timeout), 0, 0, 0},                              \
		{"metadata", JSON_OBJECT, AT(type, in metadata), 0, 0, 0},                         \
		{"volumes", JSON_ARRAY, AT(type, in volumes), 0, 0, WARDEN_VOLUMES_MAX},           \
		{"dependencies", JSON_ARRAY, AT(type, in dependencies), 0, 0, 200},                \
		{"packages", JSON_ARRAY, AT(type, in packages), 0, 0, 200},                        \
		{"onIdle", JSON_STRING, AT(type, in on_idle), 0, 0, 16},                           \
		{"onLease", JSON_STRING, AT(type, in on_lease), 0, 0, 16},                         \
		{"autoResume", JSON_BOOL, AT(type, in auto_resume), 0, 0, 0},

static const struct json_field create_fields[] = {CREATE_FIELDS(create_body, )};

/* A run's env, files and user are its sandbox's. */
static const struct json_field run_fields[] = {
	CREATE_FIELDS(run_body, create.) EXEC_ONLY_FIELDS(run_body, exec.){
		"encoding", JSON_STRING, AT(run_body, exec.encoding), 0, 0, 16},
};

static const struct json_field resource_fields[] = {
	{"memory", JSON_SIZE, AT(resources, memory), 0, 16 << 20, INT64_C(1) << 46},
	{"cpu", JSON_CPU, AT(resources, cpu), 0, 10, 1024000},
	{"pids", JSON_INTEGER, AT(resources, pids), 0, 2, 1 << 22},
	{"openFiles", JSON_INTEGER, AT(resources, open_files), 0, 16, 1 << 20},
	{"disk", JSON_SIZE, AT(resources, disk), 0, 1 << 20, INT64_C(1) << 50},
};

struct timeouts {
	int64_t idle, execution, paused, lease;
};

static const struct json_field timeout_fields[] = {
	{"idle", JSON_DURATION, AT(timeouts, idle), 0, 0, DURATION_MAX_MS},
	{"execution", JSON_DURATION, AT(timeouts, execution), 0, 0, DURATION_MAX_MS},
	{"paused", JSON_DURATION, AT(timeouts, paused), 0, 0, DURATION_MAX_MS},
	{"lease", JSON_DURATION, AT(timeouts, lease), 0, 0, DURATION_MAX_MS},
};

static int decode_timeouts(const cJSON *value, struct timeouts *ret, struct error *e)
{
	if (!value)
		return 0;
	if (!cJSON_IsObject(value))
		return error_set_field(e, ERROR_INVALID_FIELD, "timeout",
			"\"timeout\" must be an object such as {\"idle\": \"10m\", \"execution\": \"30s\"}");
	return json_decode(value, timeout_fields, ARRAY_LEN(timeout_fields), "timeout.", ret, e);
}

static int decode_expiry(
	const char *text, const char *field, enum sandbox_expiry *ret, struct error *e)
{
	if (!text || sandbox_expiry_of(text, ret))
		return 0;
	return error_set_field(e, ERROR_INVALID_FIELD, field,
		"\"%s\" must be \"destroy\", \"pause\" or \"suspend\"", field);
}

/* ---- whole bodies ---- */

static const struct json_field volume_fields[] = {
	{"volume", JSON_STRING, AT(volume_mount, volume), JSON_REQUIRED | JSON_NOT_EMPTY, 0, 63},
	{"path", JSON_STRING, AT(volume_mount, path), JSON_REQUIRED | JSON_NOT_EMPTY, 0, 4095},
	{"readOnly", JSON_BOOL, AT(volume_mount, read_only), 0, 0, 0},
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

static int settle_create(const struct create_body *body, const struct timeouts *timeouts,
	struct scratch *memory, struct sandbox_spec *ret, struct error *e)
{
	struct file_spec *files = NULL;
	if (decode_name(body->name, e) < 0 || decode_user(body->user, e) < 0 ||
		decode_expiry(body->on_idle, "onIdle", &ret->on_idle, e) < 0 ||
		decode_expiry(body->on_lease, "onLease", &ret->on_lease, e) < 0 ||
		(body->workdir && decode_path(body->workdir, "workdir", true, e) < 0) ||
		(body->resources &&
			json_decode(body->resources, resource_fields, ARRAY_LEN(resource_fields),
				"resources.", &ret->resources, e) < 0) ||
		json_environment(body->env, "env", memory, &ret->env, e) < 0 ||
		decode_strings(body->dependencies, "dependencies", memory, &ret->dependencies, e) <
			0 ||
		decode_strings(body->packages, "packages", memory, &ret->packages, e) < 0 ||
		decode_files(body->files, memory, &files, &ret->file_count, e) < 0 ||
		decode_volumes(body->volumes, memory, ret, e) < 0 ||
		json_text(body->metadata, "metadata", METADATA_MAX, memory, &ret->metadata, e) < 0)
		return -1;
	ret->files = files;
	ret->template_name = body->template_name;
	ret->snapshot = body->snapshot;
	ret->name = body->name;
	ret->description = body->description;
	ret->user = body->user;
	ret->workdir = body->workdir;
	ret->project = body->project;
	ret->auto_resume = body->auto_resume;
	ret->idle_ms = timeouts->idle;
	ret->execution_ms = timeouts->execution;
	ret->paused_timeout_ms = timeouts->paused;
	ret->lease_ms = timeouts->lease;
	return 0;
}

int decode_create(
	const cJSON *body, struct scratch *memory, struct sandbox_spec *ret, struct error *e)
{
	struct create_body fields = {0};
	struct timeouts timeouts = {0};
	if (json_decode(body, create_fields, ARRAY_LEN(create_fields), "", &fields, e) < 0 ||
		decode_timeouts(fields.timeout, &timeouts, e) < 0)
		return -1;
	return settle_create(&fields, &timeouts, memory, ret, e);
}

int decode_run(const cJSON *body, struct scratch *memory, struct sandbox_spec *create,
	struct exec_options *exec, struct error *e)
{
	struct run_body fields = {0};
	struct timeouts timeouts = {0};
	if (json_decode(body, run_fields, ARRAY_LEN(run_fields), "", &fields, e) < 0)
		return -1;
	/* Both forms: "30s" as for exec, or the object as for create. */
	if (cJSON_IsObject(fields.create.timeout)) {
		if (decode_timeouts(fields.create.timeout, &timeouts, e) < 0)
			return -1;
	} else if (fields.create.timeout) {
		if (decode_timeout_text(fields.create.timeout, &timeouts.execution, e) < 0)
			return -1;
	}
	if (settle_create(&fields.create, &timeouts, memory, create, e) < 0)
		return -1;
	return decode_exec_fields(&fields.exec, memory, exec, e);
}

/* ---- changes ---- */

struct change_body {
	const char *name, *description, *on_idle, *on_lease;
	const cJSON *env, *timeout, *metadata, *auto_resume;
};

static const struct json_field change_fields[] = {
	{"name", JSON_STRING, AT(change_body, name), 0, 0, 63},
	{"description", JSON_STRING, AT(change_body, description), 0, 0, 1024},
	{"metadata", JSON_OBJECT, AT(change_body, metadata), 0, 0, 0},
	{"env", JSON_OBJECT, AT(change_body, env), 0, 0, ENV_MAX},
	{"timeout", JSON_ANY, AT(change_body, timeout), 0, 0, 0},
	{"onIdle", JSON_STRING, AT(change_body, on_idle), 0, 0, 16},
	{"onLease", JSON_STRING, AT(change_body, on_lease), 0, 0, 16},
	{"autoResume", JSON_ANY, AT(change_body, auto_resume), 0, 0, 0},
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
	ret->unset = unset;
	r = r < 0 ? r : json_environment(values, "env", memory, &ret->env, e);
	cJSON_Delete(values);
	return r;
}

static int decode_expiry_change(const char *text, const char *field, int *ret, struct error *e)
{
	enum sandbox_expiry expiry;
	if (!text)
		return 0;
	if (decode_expiry(text, field, &expiry, e) < 0)
		return -1;
	*ret = (int)expiry;
	return 0;
}

int decode_change(
	const cJSON *body, struct scratch *memory, struct sandbox_change *ret, struct error *e)
{
	struct change_body fields = {0};
	struct timeouts timeouts = {
		SANDBOX_UNCHANGED, SANDBOX_UNCHANGED, SANDBOX_UNCHANGED, SANDBOX_UNCHANGED};
	*ret = sandbox_no_change;
	if (json_decode(body, change_fields, ARRAY_LEN(change_fields), "", &fields, e) < 0 ||
		decode_timeouts(fields.timeout, &timeouts, e) < 0 ||
		decode_name(fields.name, e) < 0 ||
		decode_expiry_change(fields.on_idle, "onIdle", &ret->on_idle, e) < 0 ||
		decode_expiry_change(fields.on_lease, "onLease", &ret->on_lease, e) < 0 ||
		decode_env_change(fields.env, memory, ret, e) < 0 ||
		json_text(fields.metadata, "metadata", METADATA_MAX, memory, &ret->metadata, e) < 0)
		return -1;
	if (fields.auto_resume && !cJSON_IsBool(fields.auto_resume))
		return error_set_field(e, ERROR_INVALID_FIELD, "autoResume",
			"\"autoResume\" must be true or false");
	if (fields.auto_resume)
		ret->auto_resume = cJSON_IsTrue(fields.auto_resume);
	ret->name = fields.name;
	ret->description = fields.description;
	ret->idle_ms = timeouts.idle;
	ret->execution_ms = timeouts.execution;
	ret->paused_timeout_ms = timeouts.paused;
	ret->lease_ms = timeouts.lease;
	return 0;
}
