#include "dialect/agentuity/create.h"
#include "dialect/agentuity/aliases.h"
#include "op/exec.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define FILES_MAX     1000
#define ARGUMENTS_MAX 4000
#define PATH_LEN_MAX  4095

struct create_body {
	const char *runtime, *runtime_id, *snapshot;
	const cJSON *network, *stream, *command, *files, *dependencies, *packages, *scopes;
	bool disable_snapshots;
};

#define AT(type, member) offsetof(struct type, member)

static const struct json_field create_fields[] = {
	{"runtime", FIELD_TEXT, AT(create_body, runtime), 0, 0, 256},
	{"runtimeId", FIELD_TEXT, AT(create_body, runtime_id), 0, 0, 256},
	{"network", FIELD_OBJECT, AT(create_body, network), 0, 0, 0},
	{"stream", FIELD_OBJECT, AT(create_body, stream), 0, 0, 0},
	{"command", FIELD_OBJECT, AT(create_body, command), 0, 0, 0},
	{"files", FIELD_ARRAY, AT(create_body, files), 0, 0, FILES_MAX},
	{"snapshot", FIELD_TEXT, AT(create_body, snapshot), 0, 0, 256},
	{"dependencies", FIELD_ARRAY, AT(create_body, dependencies), 0, 0, 200},
	{"packages", FIELD_ARRAY, AT(create_body, packages), 0, 0, 200},
	{"scopes", FIELD_ARRAY, AT(create_body, scopes), 0, 0, 100},
	{"disableSnapshots", FIELD_BOOL, AT(create_body, disable_snapshots), 0, 0, 0},
};

struct network_body {
	bool enabled;
	int64_t port;
};

static const struct json_field network_fields[] = {
	{"enabled", FIELD_BOOL, AT(network_body, enabled), 0, 0, 0},
	{"port", FIELD_INTEGER, AT(network_body, port), 0, 1024, 65535},
};

struct command_body {
	const cJSON *exec, *files;
	const char *mode;
};

static const struct json_field command_fields[] = {
	{"exec", FIELD_ARRAY, AT(command_body, exec), FIELD_REQUIRED | FIELD_NOT_EMPTY, 0,
		ARGUMENTS_MAX},
	{"files", FIELD_ARRAY, AT(command_body, files), 0, 0, FILES_MAX},
	{"mode", FIELD_TEXT, AT(command_body, mode), 0, 0, 16},
};

struct stream_body {
	const char *in, *out, *err;
	bool timestamps;
};

static const struct json_field stream_fields[] = {
	{"stdin", FIELD_TEXT, AT(stream_body, in), 0, 0, 64},
	{"stdout", FIELD_TEXT, AT(stream_body, out), 0, 0, 64},
	{"stderr", FIELD_TEXT, AT(stream_body, err), 0, 0, 64},
	{"timestamps", FIELD_BOOL, AT(stream_body, timestamps), 0, 0, 0},
};

struct file_body {
	const char *path, *content;
};

static const struct json_field file_fields[] = {
	{"path", FIELD_TEXT, AT(file_body, path), FIELD_REQUIRED | FIELD_NOT_EMPTY, 0,
		PATH_LEN_MAX},
	{"content", FIELD_TEXT, AT(file_body, content), FIELD_REQUIRED, 0, 32 << 20},
};

int agentuity_decode_files(const cJSON *list, const char *field, struct scratch *memory,
	const struct file_spec **files, size_t *count, struct error *e)
{
	const cJSON *item;
	size_t had = *count;
	if (!list)
		return 0;
	struct file_spec *all =
		scratch_alloc(memory, (had + (size_t)cJSON_GetArraySize(list) + 1) * sizeof *all);
	if (had)
		memcpy(all, *files, had * sizeof *all);
	cJSON_ArrayForEach(item, list)
	{
		char path[64], content[72];
		struct file_body body = {0};
		struct file_spec *file = &all[*count];
		snprintf(path, sizeof path, "%s[%zu].", field, *count - had);
		snprintf(content, sizeof content, "%scontent", path);
		if (!cJSON_IsObject(item))
			return error_set_field(e, ERROR_INVALID_FIELD, field,
				"\"%s\" must be a list of objects", field);
		if (json_decode_known(item, file_fields, ARRAY_LEN(file_fields), path, &body, e) <
				0 ||
			json_bytes(body.content, content, memory, &file->content, &file->len, e) <
				0)
			return -1;
		file->path = body.path;
		(*count)++;
	}
	*files = all;
	return 0;
}

int agentuity_decode_argv(const cJSON *list, const char *field, struct scratch *memory,
	const char *const **ret, struct error *e)
{
	const cJSON *item;
	size_t n = 0;
	const char **argv =
		scratch_alloc(memory, ((size_t)cJSON_GetArraySize(list) + 1) * sizeof *argv);
	cJSON_ArrayForEach(item, list)
	{
		if (!cJSON_IsString(item))
			return error_set_field(e, ERROR_INVALID_FIELD, field,
				"\"%s\" must hold strings only", field);
		argv[n++] = item->valuestring;
	}
	if (n == 0 || n > ARGUMENTS_MAX || argv[0][0] == '\0')
		return error_set_field(e, ERROR_INVALID_FIELD, field,
			"\"%s\" must be a list of 1 to %d strings, the first of them a program",
			field, ARGUMENTS_MAX);
	*ret = argv;
	return 0;
}

/* A port that is named is open to everyone. */
static int agentuity_create_decode_network(
	const cJSON *network, struct scratch *memory, struct sandbox_spec *spec, struct error *e)
{
	const size_t digits_size = 16;
	struct network_body body = {0};
	if (network && json_decode_known(network, network_fields, ARRAY_LEN(network_fields),
			       "network.", &body, e) < 0)
		return -1;
	if (body.port) {
		char *digits = scratch_alloc(memory, digits_size);
		snprintf(digits, digits_size, "%lld", (long long)body.port);
		spec->port_grants = digits;
	}
	spec->network.mode = body.enabled ? NETWORK_OPEN : NETWORK_NONE;
	return 0;
}

/* Doing without what was asked for would be a lie. */
static int agentuity_create_refuse_unsupported(const struct create_body *b, struct error *e)
{
	if (b->scopes && cJSON_GetArraySize(b->scopes) > 0)
		return error_set_field(e, ERROR_NOT_IMPLEMENTED, "scopes",
			"this server has no service that scopes could be for");
	if (b->snapshot && (b->runtime || b->runtime_id))
		return error_set_field(e, ERROR_INVALID_FIELD, "snapshot",
			"a snapshot brings its runtime along: it cannot be given beside one");
	return 0;
}

static int agentuity_create_decode_command(const cJSON *value, struct scratch *memory,
	struct sandbox_spec *spec, struct agentuity_create *create, struct error *e)
{
	struct command_body body = {0};
	if (!value)
		return 0;
	if (json_decode_known(
		    value, command_fields, ARRAY_LEN(command_fields), "command.", &body, e) < 0 ||
		agentuity_decode_argv(body.exec, "command.exec", memory, &create->argv, e) < 0 ||
		agentuity_decode_files(body.files, "command.files", memory, &create->files,
			&create->file_count, e) < 0)
		return -1;
	spec->ephemeral = body.mode && strcmp(body.mode, "oneshot") == 0;
	if (body.mode && !spec->ephemeral && strcmp(body.mode, "interactive") != 0)
		return error_set_field(e, ERROR_INVALID_FIELD, "command.mode",
			"\"command.mode\" must be \"oneshot\" or \"interactive\"");
	return 0;
}

/* Output has an address of its own for every execution; it goes nowhere else. */
static int decode_output(const char *value, const char *field, bool *ignored, struct error *e)
{
	*ignored = value && strcmp(value, "ignore") == 0;
	if (value && !*ignored)
		return error_set_field(e, ERROR_NOT_IMPLEMENTED, field,
			"\"%s\" can be \"ignore\" only: this server writes to no stream of others",
			field);
	return 0;
}

int agentuity_decode_streams(
	const cJSON *value, bool ignores[2], const char **stdin_id, struct error *e)
{
	struct stream_body body = {0};
	if (!value)
		return 0;
	if (json_decode_known(value, stream_fields, ARRAY_LEN(stream_fields), "stream.", &body, e) <
			0 ||
		decode_output(body.out, "stream.stdout", &ignores[0], e) < 0 ||
		decode_output(body.err, "stream.stderr", &ignores[1], e) < 0)
		return -1;
	if (body.in && stdin_id && strcmp(body.in, "ignore") != 0)
		*stdin_id = body.in;
	return 0;
}

int agentuity_decode_names(const cJSON *list, const char *field, struct scratch *memory,
	const char *const **ret, struct error *e)
{
	const cJSON *item;
	size_t n = 0;
	if (!list || cJSON_GetArraySize(list) == 0)
		return 0;
	const char **names =
		scratch_alloc(memory, ((size_t)cJSON_GetArraySize(list) + 1) * sizeof *names);
	cJSON_ArrayForEach(item, list)
	{
		if (!cJSON_IsString(item) || item->valuestring[0] == '\0')
			return error_set_field(e, ERROR_INVALID_FIELD, field,
				"\"%s\" must be a list of names", field);
		names[n++] = item->valuestring;
	}
	*ret = names;
	return 0;
}

/* HOME is the dialect's own, unless the caller has another in mind. */
static void add_home(struct scratch *memory, struct sandbox_spec *spec)
{
	static const char home[] = "HOME=" AGENTUITY_HOME;
	struct strings *env = &spec->env;
	for (size_t at = 0; at < env->len; at += strlen(env->data + at) + 1)
		if (strncmp(env->data + at, "HOME=", 5) == 0)
			return;
	char *data = scratch_alloc(memory, env->len + sizeof home);
	if (env->len)
		memcpy(data, env->data, env->len);
	memcpy(data + env->len, home, sizeof home);
	*env = (struct strings){data, env->len + sizeof home};
}

/* "srt_base", "base": a runtime is a template, and its id is its name. */
static const char *template_of(const struct create_body *b)
{
	const char *name = b->runtime ? b->runtime : b->runtime_id;
	if (name && strncmp(name, "srt_", 4) == 0)
		name += 4;
	return name;
}

int agentuity_decode_create(const cJSON *body, struct scratch *memory, struct sandbox_spec *spec,
	struct agentuity_create *create, struct error *e)
{
	struct create_body b = {0};
	struct field rows[JSON_ALIASES_MAX];
	size_t count = json_alias_rows(&agentuity_sandbox, FIELD_CREATE, rows);
	const struct json_part parts[] = {{rows, NULL, count, 0, &spec->settings, NULL},
		{NULL, create_fields, ARRAY_LEN(create_fields), 0, &b, NULL}, {0}};
	if (json_decode_known_parts(body, parts, memory, e) < 0 ||
		agentuity_create_refuse_unsupported(&b, e) < 0 ||
		agentuity_create_decode_network(b.network, memory, spec, e) < 0 ||
		agentuity_decode_names(
			b.dependencies, "dependencies", memory, &spec->dependencies, e) < 0 ||
		agentuity_decode_names(b.packages, "packages", memory, &spec->packages, e) < 0 ||
		agentuity_decode_files(
			b.files, "files", memory, &create->files, &create->file_count, e) < 0 ||
		agentuity_create_decode_command(b.command, memory, spec, create, e) < 0 ||
		agentuity_decode_streams(b.stream, create->ignores, &create->stdin_id, e) < 0)
		return -1;
	if (create->stdin_id && !create->argv)
		return error_set_field(e, ERROR_INVALID_FIELD, "stream.stdin",
			"stdin needs a command that reads it");
	add_home(memory, spec);
	spec->template_name = template_of(&b);
	spec->snapshot = b.snapshot && b.snapshot[0] ? b.snapshot : NULL;
	spec->workdir = AGENTUITY_HOME;
	spec->auto_resume = true;
	return 0;
}

const struct op_first agentuity_home = {.workdir = AGENTUITY_HOME};
