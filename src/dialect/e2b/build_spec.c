/*
 * What a build is to do, as E2B's body has it: what it begins with, its steps, what it starts.
 *
 * There is no registry behind this server: `fromImage` names a template, which may have been
 * imported from an image under its very name. E2B's own base image is the template `base`.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialect/e2b/templates.h"

#define STEPS_MAX      1000
#define COMMAND_MAX    (64 * 1024)
#define E2B_BASE_IMAGE "e2bdev/base"

struct start_body {
	const char *start, *ready, *image, *template_name;
	const cJSON *steps, *registry;
	bool force;
};

static const struct json_field start_fields[] = {
	{"startCmd", FIELD_TEXT, offsetof(struct start_body, start), 0, 0, COMMAND_MAX},
	{"readyCmd", FIELD_TEXT, offsetof(struct start_body, ready), 0, 0, COMMAND_MAX},
	{"fromImage", FIELD_TEXT, offsetof(struct start_body, image), 0, 0, 512},
	{"fromTemplate", FIELD_TEXT, offsetof(struct start_body, template_name), 0, 0,
		TEMPLATE_REF_MAX},
	{"fromImageRegistry", FIELD_OBJECT, offsetof(struct start_body, registry), 0, 0, 0},
	{"steps", FIELD_ARRAY, offsetof(struct start_body, steps), 0, 0, STEPS_MAX},
	{"force", FIELD_BOOL, offsetof(struct start_body, force), 0, 0, 0},
};

struct step_body {
	const char *type, *files_hash;
	const cJSON *args;
	bool force;
};

static const struct json_field step_fields[] = {
	{"type", FIELD_TEXT, offsetof(struct step_body, type), FIELD_REQUIRED, 0, 16},
	{"args", FIELD_ARRAY, offsetof(struct step_body, args), 0, 0, 1000},
	{"filesHash", FIELD_TEXT, offsetof(struct step_body, files_hash), 0, 0, CONTEXT_HASH_LEN},
	{"force", FIELD_BOOL, offsetof(struct step_body, force), 0, 0, 0},
};

/* A step's argument, or "". */
static const char *build_spec_argument(const struct step_body *s, int index)
{
	const cJSON *item = cJSON_GetArrayItem(s->args, index);
	return cJSON_IsString(item) ? item->valuestring : "";
}

static const char *const *shell_line(const char *line, struct scratch *memory)
{
	const char **argv = scratch_alloc(memory, 5 * sizeof *argv);
	argv[0] = "/bin/bash";
	argv[1] = "-l";
	argv[2] = "-c";
	argv[3] = line;
	return argv;
}

static int settle_run(
	const struct step_body *s, struct scratch *memory, struct build_step *ret, struct error *e)
{
	if (!build_spec_argument(s, 0)[0])
		return error_set_field(
			e, ERROR_INVALID_FIELD, "args", "a RUN needs a command to run");
	ret->kind = BUILD_RUN;
	ret->argv = shell_line(build_spec_argument(s, 0), memory);
	ret->user = build_spec_argument(s, 1)[0] ? build_spec_argument(s, 1) : NULL;
	return 0;
}

static int settle_env(
	const struct step_body *s, struct scratch *memory, struct build_step *ret, struct error *e)
{
	int count = cJSON_GetArraySize(s->args);
	const char **env = scratch_alloc(memory, ((size_t)count / 2 + 1) * sizeof *env);
	for (int i = 0; i + 1 < count; i += 2) {
		size_t size = strlen(build_spec_argument(s, i)) +
			      strlen(build_spec_argument(s, i + 1)) + 2;
		char *entry = scratch_alloc(memory, size);
		if (!build_spec_argument(s, i)[0] || strchr(build_spec_argument(s, i), '='))
			return error_set_field(e, ERROR_INVALID_FIELD, "args",
				"'%.64s' is not a valid name of an environment variable",
				build_spec_argument(s, i));
		snprintf(entry, size, "%s=%s", build_spec_argument(s, i),
			build_spec_argument(s, i + 1));
		env[i / 2] = entry;
	}
	ret->kind = BUILD_ENV;
	ret->env = env;
	return 0;
}

/* Patterns were expanded by the client: what is left of one is the directory that it looks in. */
static const char *without_pattern(const char *source, struct scratch *memory)
{
	size_t plain = strcspn(source, "*?[");
	if (!source[plain])
		return source;
	while (plain > 0 && source[plain - 1] != '/')
		plain--;
	char *directory = scratch_alloc(memory, plain + 1);
	memcpy(directory, source, plain);
	return directory;
}

static int settle_copy(
	const struct step_body *s, struct scratch *memory, struct build_step *ret, struct error *e)
{
	char *end = NULL;
	const char *mode = build_spec_argument(s, 3);
	ret->kind = BUILD_COPY;
	ret->context = s->files_hash;
	ret->source = without_pattern(build_spec_argument(s, 0), memory);
	ret->path = build_spec_argument(s, 1);
	ret->user = build_spec_argument(s, 2)[0] ? build_spec_argument(s, 2) : NULL;
	ret->mode = mode[0] ? (int)strtol(mode, &end, 8) : -1;
	if (end && (*end || ret->mode < 0 || ret->mode > 07777))
		return error_set_field(
			e, ERROR_INVALID_FIELD, "args", "'%.16s' is not a mode such as 0755", mode);
	if (!s->files_hash || !ret->path[0])
		return error_set_field(e, ERROR_INVALID_FIELD, "args",
			"a COPY needs files that were uploaded, and where they go");
	return 0;
}

static int settle_step(
	const struct step_body *s, struct scratch *memory, struct build_step *ret, struct error *e)
{
	*ret = (struct build_step){.mode = -1, .force = s->force};
	if (strcmp(s->type, "RUN") == 0)
		return settle_run(s, memory, ret, e);
	if (strcmp(s->type, "COPY") == 0)
		return settle_copy(s, memory, ret, e);
	if (strcmp(s->type, "ENV") == 0)
		return settle_env(s, memory, ret, e);
	if (strcmp(s->type, "WORKDIR") == 0) {
		ret->kind = BUILD_WORKDIR;
		ret->path = build_spec_argument(s, 0);
		return 0;
	}
	if (strcmp(s->type, "USER") == 0) {
		ret->kind = BUILD_USER;
		ret->user = build_spec_argument(s, 0);
		return 0;
	}
	return error_set_field(e, ERROR_INVALID_FIELD, "type", "there is no step '%.16s'", s->type);
}

static int settle_steps(const struct start_body *body, struct scratch *memory,
	struct build_spec *spec, struct error *e)
{
	const cJSON *item;
	struct build_step *steps = scratch_alloc(
		memory, ((size_t)cJSON_GetArraySize(body->steps) + 1) * sizeof *steps);
	spec->steps = steps;
	cJSON_ArrayForEach(item, body->steps)
	{
		struct step_body step = {0};
		char prefix[32];
		snprintf(prefix, sizeof prefix, "steps[%zu].", spec->step_count);
		if (json_decode_known(item, step_fields, ARRAY_LEN(step_fields), prefix, &step, e) <
				0 ||
			settle_step(&step, memory, &steps[spec->step_count], e) < 0)
			return -1;
		spec->step_count++;
	}
	return 0;
}

static const char *image_of(const char *image)
{
	size_t len = strlen(E2B_BASE_IMAGE);
	bool is_base = strncmp(image, E2B_BASE_IMAGE, len) == 0 &&
		       (image[len] == '\0' || image[len] == ':');
	return is_base ? "base" : image;
}

static int settle_start(const struct start_body *body, struct scratch *memory,
	struct build_spec *spec, struct error *e)
{
	if (body->registry)
		return error_set_field(e, ERROR_NOT_IMPLEMENTED, "fromImageRegistry",
			"\"fromImageRegistry\": this server does not fetch images; import them with `bunker templates import`");
	if (body->image && body->template_name)
		return error_set(e, ERROR_INVALID_REQUEST,
			"\"fromImage\" and \"fromTemplate\" cannot both be given");
	spec->from = body->template_name ? e2b_reference_in(body->template_name, memory)
		     : body->image       ? image_of(body->image)
					 : "base";
	spec->start = body->start && body->start[0] ? shell_line(body->start, memory) : NULL;
	spec->ready = body->ready && body->ready[0] ? body->ready : NULL;
	spec->no_cache = body->force;
	return settle_steps(body, memory, spec, e);
}

int e2b_build_spec(
	const cJSON *message, struct scratch *memory, struct build_spec *ret, struct error *e)
{
	struct start_body body = {0};
	if (json_decode_known(message, start_fields, ARRAY_LEN(start_fields), "", &body, e) < 0)
		return -1;
	return settle_start(&body, memory, ret, e);
}
