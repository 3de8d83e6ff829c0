#include "dialect/agentuity/create.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define FILES_MAX     1000
#define ARGUMENTS_MAX 4000
#define PATH_LEN_MAX  4095
#define METADATA_MAX  (64 * 1024)
#define YEAR_MS       (INT64_C(365) * 24 * 3600 * 1000)

struct create_body {
	const char *project, *runtime, *runtime_id, *name, *description, *snapshot;
	const cJSON *resources, *env, *network, *stream, *timeout, *command, *files, *metadata;
	const cJSON *dependencies, *packages, *scopes;
	bool disable_snapshots;
};

#define AT(type, member) offsetof(struct type, member)

static const struct json_field create_fields[] = {
	{"projectId", JSON_STRING, AT(create_body, project), 0, 0, 128},
	{"runtime", JSON_STRING, AT(create_body, runtime), 0, 0, 256},
	{"runtimeId", JSON_STRING, AT(create_body, runtime_id), 0, 0, 256},
	{"name", JSON_STRING, AT(create_body, name), 0, 0, 63},
	{"description", JSON_STRING, AT(create_body, description), 0, 0, 1024},
	{"resources", JSON_OBJECT, AT(create_body, resources), 0, 0, 0},
	{"env", JSON_STRING_MAP, AT(create_body, env), 0, 0, 1000},
	{"network", JSON_OBJECT, AT(create_body, network), 0, 0, 0},
	{"stream", JSON_OBJECT, AT(create_body, stream), 0, 0, 0},
	{"timeout", JSON_OBJECT, AT(create_body, timeout), 0, 0, 0},
	{"command", JSON_OBJECT, AT(create_body, command), 0, 0, 0},
	{"files", JSON_ARRAY, AT(create_body, files), 0, 0, FILES_MAX},
	{"snapshot", JSON_STRING, AT(create_body, snapshot), 0, 0, 256},
	{"dependencies", JSON_ARRAY, AT(create_body, dependencies), 0, 0, 200},
	{"packages", JSON_ARRAY, AT(create_body, packages), 0, 0, 200},
	{"metadata", JSON_OBJECT, AT(create_body, metadata), 0, 0, 0},
	{"scopes", JSON_ARRAY, AT(create_body, scopes), 0, 0, 100},
	{"disableSnapshots", JSON_BOOL, AT(create_body, disable_snapshots), 0, 0, 0},
};

static const struct json_field resource_fields[] = {
	{"memory", JSON_SIZE, AT(resources, memory), 0, 16 << 20, INT64_C(1) << 46},
	{"cpu", JSON_CPU, AT(resources, cpu), 0, 10, 1024000},
	{"disk", JSON_SIZE, AT(resources, disk), 0, 1 << 20, INT64_C(1) << 50},
};

struct timeouts {
	int64_t idle, execution, paused;
};

static const struct json_field timeout_fields[] = {
	{"idle", JSON_DURATION, AT(timeouts, idle), 0, 0, YEAR_MS},
	{"execution", JSON_DURATION, AT(timeouts, execution), 0, 0, YEAR_MS},
	{"paused", JSON_DURATION, AT(timeouts, paused), 0, 0, YEAR_MS},
};

struct network_body {
	bool enabled;
	int64_t port;
};

static const struct json_field network_fields[] = {
	{"enabled", JSON_BOOL, AT(network_body, enabled), 0, 0, 0},
	{"port", JSON_INTEGER, AT(network_body, port), 0, 1024, 65535},
};

struct command_body {
	const cJSON *exec, *files;
	const char *mode;
};

static const struct json_field command_fields[] = {
	{"exec", JSON_ARRAY, AT(command_body, exec), JSON_REQUIRED | JSON_NOT_EMPTY, 0,
		ARGUMENTS_MAX},
	{"files", JSON_ARRAY, AT(command_body, files), 0, 0, FILES_MAX},
	{"mode", JSON_STRING, AT(command_body, mode), 0, 0, 16},
};

struct stream_body {
	const char *in, *out, *err;
	bool timestamps;
};

static const struct json_field stream_fields[] = {
	{"stdin", JSON_STRING, AT(stream_body, in), 0, 0, 64},
	{"stdout", JSON_STRING, AT(stream_body, out), 0, 0, 64},
	{"stderr", JSON_STRING, AT(stream_body, err), 0, 0, 64},
	{"timestamps", JSON_BOOL, AT(stream_body, timestamps), 0, 0, 0},
};

struct file_body {
	const char *path, *content;
};

static const struct json_field file_fields[] = {
	{"path", JSON_STRING, AT(file_body, path), JSON_REQUIRED | JSON_NOT_EMPTY, 0, PATH_LEN_MAX},
	{"content", JSON_STRING, AT(file_body, content), JSON_REQUIRED, 0, 32 << 20},
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

static int check_network(const cJSON *network, struct error *e)
{
	struct network_body body = {0};
	if (network && json_decode_known(network, network_fields, ARRAY_LEN(network_fields),
			       "network.", &body, e) < 0)
		return -1;
	if (body.enabled || body.port)
		return error_set_field(e, ERROR_NOT_IMPLEMENTED,
			body.port ? "network.port" : "network.enabled",
			"this server gives sandboxes no network yet");
	return 0;
}

/* Doing without what was asked for would be a lie. */
static int refuse_unsupported(const struct create_body *b, struct error *e)
{
	if (b->scopes && cJSON_GetArraySize(b->scopes) > 0)
		return error_set_field(e, ERROR_NOT_IMPLEMENTED, "scopes",
			"this server has no service that scopes could be for");
	if (b->snapshot && (b->runtime || b->runtime_id))
		return error_set_field(e, ERROR_INVALID_FIELD, "snapshot",
			"a snapshot brings its runtime along: it cannot be given beside one");
	return check_network(b->network, e);
}

static int decode_command(const cJSON *value, struct scratch *memory, struct sandbox_spec *spec,
	struct agentuity_create *create, struct error *e)
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
	size_t n = 0;
	bool has_home = false;
	for (; spec->env && spec->env[n]; n++)
		has_home |= strncmp(spec->env[n], "HOME=", 5) == 0;
	if (has_home)
		return;
	const char **env = scratch_alloc(memory, (n + 2) * sizeof *env);
	for (size_t i = 0; i < n; i++)
		env[i] = spec->env[i];
	env[n] = "HOME=" AGENTUITY_HOME;
	spec->env = env;
}

/* "srt_base", "base": a runtime is a template, and its id is its name. */
static const char *template_of(const struct create_body *b)
{
	const char *name = b->runtime ? b->runtime : b->runtime_id;
	if (name && strncmp(name, "srt_", 4) == 0)
		name += 4;
	return name;
}

static void fill_spec(
	const struct create_body *b, const struct timeouts *timeouts, struct sandbox_spec *spec)
{
	spec->template_name = template_of(b);
	spec->snapshot = b->snapshot && b->snapshot[0] ? b->snapshot : NULL;
	spec->name = b->name;
	spec->description = b->description;
	spec->project = b->project;
	spec->workdir = AGENTUITY_HOME;
	spec->idle_ms = timeouts->idle;
	spec->on_idle = EXPIRY_DESTROY;
	spec->execution_ms = timeouts->execution;
	spec->paused_timeout_ms = timeouts->paused;
	spec->auto_resume = true;
}

int agentuity_decode_create(const cJSON *body, struct scratch *memory, struct sandbox_spec *spec,
	struct agentuity_create *create, struct error *e)
{
	struct create_body b = {0};
	struct timeouts timeouts = {0};
	if (json_decode_known(body, create_fields, ARRAY_LEN(create_fields), "", &b, e) < 0 ||
		refuse_unsupported(&b, e) < 0 ||
		(b.resources &&
			json_decode_known(b.resources, resource_fields, ARRAY_LEN(resource_fields),
				"resources.", &spec->resources, e) < 0) ||
		(b.timeout && json_decode_known(b.timeout, timeout_fields,
				      ARRAY_LEN(timeout_fields), "timeout.", &timeouts, e) < 0) ||
		json_environment(b.env, "env", memory, &spec->env, e) < 0 ||
		json_text(b.metadata, "metadata", METADATA_MAX, memory, &spec->metadata, e) < 0 ||
		agentuity_decode_names(
			b.dependencies, "dependencies", memory, &spec->dependencies, e) < 0 ||
		agentuity_decode_names(b.packages, "packages", memory, &spec->packages, e) < 0 ||
		agentuity_decode_files(
			b.files, "files", memory, &create->files, &create->file_count, e) < 0 ||
		decode_command(b.command, memory, spec, create, e) < 0 ||
		agentuity_decode_streams(b.stream, create->ignores, &create->stdin_id, e) < 0)
		return -1;
	if (create->stdin_id && !create->argv)
		return error_set_field(e, ERROR_INVALID_FIELD, "stream.stdin",
			"stdin needs a command that reads it");
	add_home(memory, spec);
	fill_spec(&b, &timeouts, spec);
	return 0;
}

int agentuity_make_home(
	struct sandbox *s, const struct file_events *events, void *arg, struct error *e)
{
	struct file_call *making;
	struct sandbox_view view;
	sandbox_view(s, &view);
	const struct file_request request = {
		.fixed = {.op = FILE_MKDIR,
			.flags = FILE_PARENTS | FILE_EXIST_OK | FILE_HAS_MODE,
			.mode = 0755},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = AGENTUITY_HOME, [FILE_OWNER] = view.user},
	};
	return file_begin(s, "root", &request, events, arg, &making, e);
}

const struct op_first agentuity_home = {.workdir = AGENTUITY_HOME};
