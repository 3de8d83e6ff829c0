#include "api/decode.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/decode_build.h"
#include "base/cleanup.h"
#include "base/units.h"

#define FILES_MAX         1000
#define ENV_MAX           1000
#define ARGUMENTS_MAX     4000
#define PATH_LEN_MAX      4095
#define TERMINAL_SIDE_MAX 1000
#define METADATA_MAX      (64 * 1024)
#define DURATION_MAX_MS   (INT64_C(365) * 24 * 3600 * 1000)

/* ---- tables ---- */

struct create_body {
	const char *template_name, *snapshot, *name, *description, *user, *workdir, *project;
	const cJSON *resources, *env, *files, *timeout, *metadata, *dependencies, *packages;
	const char *on_idle, *on_lease;
	bool auto_resume;
};

struct exec_body {
	const cJSON *command, *env, *files, *timeout;
	const char *cwd, *user, *input, *input_encoding, *encoding;
};

struct run_body {
	struct create_body create;
	struct exec_body exec;
};

#define AT(type, member) offsetof(struct type, member)

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
		{"dependencies", JSON_ARRAY, AT(type, in dependencies), 0, 0, 200},                \
		{"packages", JSON_ARRAY, AT(type, in packages), 0, 0, 200},                        \
		{"onIdle", JSON_STRING, AT(type, in on_idle), 0, 0, 16},                           \
		{"onLease", JSON_STRING, AT(type, in on_lease), 0, 0, 16},                         \
		{"autoResume", JSON_BOOL, AT(type, in auto_resume), 0, 0, 0},

static const struct json_field create_fields[] = {CREATE_FIELDS(create_body, )};

#define EXEC_ONLY_FIELDS(type, in)                                                                 \
	{"command", JSON_ANY, AT(type, in command), JSON_REQUIRED, 0, 0},                          \
		{"cwd", JSON_STRING, AT(type, in cwd), JSON_NOT_EMPTY, 0, PATH_LEN_MAX},           \
		{"stdin", JSON_STRING, AT(type, in input), 0, 0, 32 << 20},                        \
		{"stdinEncoding", JSON_STRING, AT(type, in input_encoding), 0, 0, 16},

static const struct json_field exec_fields[] = {
	EXEC_ONLY_FIELDS(exec_body, ){"encoding", JSON_STRING, AT(exec_body, encoding), 0, 0, 16},
	{"env", JSON_STRING_MAP, AT(exec_body, env), 0, 0, ENV_MAX},
	{"files", JSON_ARRAY, AT(exec_body, files), 0, 0, FILES_MAX},
	{"timeout", JSON_ANY, AT(exec_body, timeout), 0, 0, 0},
	{"user", JSON_STRING, AT(exec_body, user), JSON_NOT_EMPTY, 0, 63},
};

struct process_body {
	struct exec_body exec;
	const char *name;
	const cJSON *pty;
	bool open_stdin;
};

static const struct json_field process_fields[] = {
	EXEC_ONLY_FIELDS(process_body, exec.){
		"env", JSON_STRING_MAP, AT(process_body, exec.env), 0, 0, ENV_MAX},
	{"timeout", JSON_ANY, AT(process_body, exec.timeout), 0, 0, 0},
	{"user", JSON_STRING, AT(process_body, exec.user), JSON_NOT_EMPTY, 0, 63},
	{"name", JSON_STRING, AT(process_body, name), 0, 0, 63},
	{"openStdin", JSON_BOOL, AT(process_body, open_stdin), 0, 0, 0},
	{"pty", JSON_ANY, AT(process_body, pty), 0, 0, 0},
};

struct size_body {
	int64_t rows, columns;
};

static const struct json_field size_fields[] = {
	{"rows", JSON_INTEGER, AT(size_body, rows), 0, 1, TERMINAL_SIDE_MAX},
	{"columns", JSON_INTEGER, AT(size_body, columns), 0, 1, TERMINAL_SIDE_MAX},
};

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

struct file_body {
	const char *path, *content, *encoding, *mode;
};

static const struct json_field file_fields[] = {
	{"path", JSON_STRING, AT(file_body, path), JSON_REQUIRED | JSON_NOT_EMPTY, 0, PATH_LEN_MAX},
	{"content", JSON_STRING, AT(file_body, content), JSON_REQUIRED, 0, 32 << 20},
	{"encoding", JSON_STRING, AT(file_body, encoding), 0, 0, 16},
	{"mode", JSON_STRING, AT(file_body, mode), 0, 0, 5},
};

/* ---- single values ---- */

int decode_encoding(const char *text, const char *field, bool *base64, struct error *e)
{
	*base64 = text && strcmp(text, "base64") == 0;
	if (text && !*base64 && strcmp(text, "utf8") != 0)
		return error_set_field(e, ERROR_INVALID_FIELD, field,
			"\"%s\" must be \"utf8\" or \"base64\"", field);
	return 0;
}

/* Bytes as they were meant; text is used as it is. */
static int decode_bytes(const char *text, bool base64, const char *field, struct scratch *memory,
	const char **bytes, size_t *len, struct error *e)
{
	if (base64)
		return json_bytes(text, field, memory, bytes, len, e);
	*bytes = text;
	*len = strlen(text);
	return 0;
}

static bool has_parent_step(const char *path)
{
	for (const char *p = path; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'))
			return true;
	}
	return false;
}

int decode_path(const char *path, const char *field, bool absolute, struct error *e)
{
	if (has_parent_step(path))
		return error_set_field(
			e, ERROR_INVALID_FIELD, field, "\"%s\" must not contain '..'", field);
	if (absolute && path[0] != '/')
		return error_set_field(
			e, ERROR_INVALID_FIELD, field, "\"%s\" must be an absolute path", field);
	return 0;
}

static int check_name(const char *name, struct error *e)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	if (!name || !name[0])
		return 0;
	if (strspn(name, allowed) != strlen(name) || strchr("-_.", name[0]))
		return error_set_field(e, ERROR_INVALID_FIELD, "name",
			"\"name\" may have letters, digits, '-', '_' and '.', and must not begin with a sign");
	return 0;
}

static int check_user(const char *user, struct error *e)
{
	if (!user || strcspn(user, ":/\n\r\t ") == strlen(user))
		return 0;
	return error_set_field(
		e, ERROR_INVALID_FIELD, "user", "\"user\" must be the name or number of a user");
}

int decode_place(const char *user, const char *cwd, struct error *e)
{
	if (check_user(user, e) < 0)
		return -1;
	return cwd ? decode_path(cwd, "cwd", true, e) : 0;
}

int decode_mode(
	const char *text, const char *field, bool *has_mode, unsigned *mode, struct error *e)
{
	*has_mode = text != NULL;
	if (!text)
		return 0;
	char *end;
	unsigned long value = strtoul(text, &end, 8);
	if (text[0] < '0' || text[0] > '7' || *end || value > 07777)
		return error_set_field(e, ERROR_INVALID_FIELD, field,
			"\"%s\" must be octal digits such as \"0644\"", field);
	*mode = (unsigned)value;
	return 0;
}

/* ---- lists ---- */

static int decode_file(const cJSON *item, size_t index, struct scratch *memory,
	struct file_spec *ret, struct error *e)
{
	char prefix[32], field[64];
	struct file_body body = {0};
	bool base64;
	snprintf(prefix, sizeof prefix, "files[%zu].", index);
	if (!cJSON_IsObject(item))
		return error_set_field(
			e, ERROR_INVALID_FIELD, "files", "\"files\" must be a list of objects");
	if (json_decode(item, file_fields, ARRAY_LEN(file_fields), prefix, &body, e) < 0)
		return -1;
	snprintf(field, sizeof field, "%spath", prefix);
	if (decode_path(body.path, field, false, e) < 0)
		return -1;
	snprintf(field, sizeof field, "%sencoding", prefix);
	if (decode_encoding(body.encoding, field, &base64, e) < 0)
		return -1;
	snprintf(field, sizeof field, "%smode", prefix);
	if (decode_mode(body.mode, field, &ret->has_mode, &ret->mode, e) < 0)
		return -1;
	snprintf(field, sizeof field, "%scontent", prefix);
	ret->path = body.path;
	return decode_bytes(body.content, base64, field, memory, &ret->content, &ret->len, e);
}

static int decode_files(const cJSON *list, struct scratch *memory, struct file_spec **ret,
	size_t *count, struct error *e)
{
	const cJSON *item;
	*count = 0;
	if (!list)
		return 0;
	*ret = scratch_alloc(memory, ((size_t)cJSON_GetArraySize(list) + 1) * sizeof **ret);
	cJSON_ArrayForEach(item, list)
	{
		if (decode_file(item, *count, memory, &(*ret)[*count], e) < 0)
			return -1;
		(*count)++;
	}
	return 0;
}

static int decode_argv(const cJSON *list, const char **argv, struct error *e)
{
	const cJSON *item;
	size_t n = 0;
	cJSON_ArrayForEach(item, list)
	{
		if (!cJSON_IsString(item))
			return error_set_field(e, ERROR_INVALID_FIELD, "command",
				"\"command\" must hold strings only");
		argv[n++] = item->valuestring;
	}
	if (n == 0 || argv[0][0] == '\0')
		return error_set_field(e, ERROR_INVALID_FIELD, "command",
			"the first element of \"command\" must name a program");
	return 0;
}

/* A list is argv as it is; a string is a line for the shell. */
static int decode_command(
	const cJSON *command, struct scratch *memory, const char *const **ret, struct error *e)
{
	int size = cJSON_IsArray(command) ? cJSON_GetArraySize(command) : 3;
	if (size == 0 || size > ARGUMENTS_MAX ||
		(!cJSON_IsArray(command) && !cJSON_IsString(command)))
		return error_set_field(e, ERROR_INVALID_FIELD, "command",
			"\"command\" must be a list of 1 to %d strings, or one string for the shell",
			ARGUMENTS_MAX);
	const char **argv = scratch_alloc(memory, ((size_t)size + 1) * sizeof *argv);
	*ret = argv;
	if (cJSON_IsArray(command))
		return decode_argv(command, argv, e);
	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = command->valuestring;
	return 0;
}

static int decode_timeout_text(const cJSON *value, int64_t *ms, struct error *e)
{
	if (!cJSON_IsString(value) || units_parse_duration_ms(value->valuestring, ms) < 0 ||
		*ms > DURATION_MAX_MS)
		return error_set_field(e, ERROR_INVALID_FIELD, "timeout",
			"\"timeout\" must be a duration such as \"30s\" or \"1h30m\"");
	return 0;
}

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

static int settle_create(const struct create_body *body, const struct timeouts *timeouts,
	struct scratch *memory, struct sandbox_spec *ret, struct error *e)
{
	struct file_spec *files = NULL;
	if (check_name(body->name, e) < 0 || check_user(body->user, e) < 0 ||
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

static int settle_exec(const struct exec_body *body, struct scratch *memory,
	struct exec_options *ret, struct error *e)
{
	bool input_base64;
	if (decode_command(body->command, memory, &ret->spec.argv, e) < 0 ||
		decode_encoding(body->encoding, "encoding", &ret->base64, e) < 0 ||
		decode_encoding(body->input_encoding, "stdinEncoding", &input_base64, e) < 0 ||
		decode_place(body->user, body->cwd, e) < 0 ||
		json_environment(body->env, "env", memory, &ret->spec.env, e) < 0 ||
		decode_files(body->files, memory, &ret->files, &ret->file_count, e) < 0)
		return -1;
	ret->spec.cwd = body->cwd;
	ret->spec.user = body->user;
	if (!body->input)
		return 0;
	return decode_bytes(body->input, input_base64, "stdin", memory, &ret->spec.input,
		&ret->spec.input_len, e);
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

int decode_exec(
	const cJSON *body, struct scratch *memory, struct exec_options *ret, struct error *e)
{
	struct exec_body fields = {0};
	if (json_decode(body, exec_fields, ARRAY_LEN(exec_fields), "", &fields, e) < 0)
		return -1;
	if (fields.timeout && decode_timeout_text(fields.timeout, &ret->spec.timeout_ms, e) < 0)
		return -1;
	return settle_exec(&fields, memory, ret, e);
}

/* true is a terminal of the usual size. */
static int decode_pty(const cJSON *pty, struct execution_spec *ret, struct error *e)
{
	struct size_body size = {.rows = 24, .columns = 80};
	if (!pty || cJSON_IsFalse(pty))
		return 0;
	if (!cJSON_IsTrue(pty) && !cJSON_IsObject(pty))
		return error_set_field(e, ERROR_INVALID_FIELD, "pty",
			"\"pty\" must be true, or an object such as {\"rows\": 24, \"columns\": 80}");
	if (cJSON_IsObject(pty) &&
		json_decode(pty, size_fields, ARRAY_LEN(size_fields), "pty.", &size, e) < 0)
		return -1;
	ret->terminal = true;
	ret->rows = (uint16_t)size.rows;
	ret->columns = (uint16_t)size.columns;
	return 0;
}

static int check_process_name(const char *name, struct error *e)
{
	/* Digits alone are a pid. */
	if (name && name[0] && strspn(name, "0123456789") == strlen(name))
		return error_set_field(e, ERROR_INVALID_FIELD, "name",
			"\"name\" must not be a number, for that is a pid");
	return check_name(name, e);
}

int decode_process(
	const cJSON *body, struct scratch *memory, struct execution_spec *ret, struct error *e)
{
	struct process_body fields = {0};
	struct exec_options options = {.spec = *ret};
	if (json_decode(body, process_fields, ARRAY_LEN(process_fields), "", &fields, e) < 0 ||
		check_process_name(fields.name, e) < 0 ||
		(fields.exec.timeout && decode_timeout_text(fields.exec.timeout,
						&options.spec.timeout_ms, e) < 0) ||
		settle_exec(&fields.exec, memory, &options, e) < 0 ||
		decode_pty(fields.pty, &options.spec, e) < 0)
		return -1;
	*ret = options.spec;
	ret->name = fields.name && fields.name[0] ? fields.name : NULL;
	ret->open_stdin = fields.open_stdin;
	return 0;
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
	return settle_exec(&fields.exec, memory, exec, e);
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
		check_name(fields.name, e) < 0 ||
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
