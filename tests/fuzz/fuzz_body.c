/*
 * Every decoder of a native request body: the first byte says which, the rest is the body. What
 * decodes is read as the core would, so that a pointer that leads nowhere is found.
 *
 * fuzz-sources: src/api/decode.c src/api/decode_build.c
 * fuzz-sources: src/api/decode_code.c src/api/decode_exec.c src/api/decode_values.c
 * fuzz-sources: src/model/build.c src/model/check.c src/model/network.c src/model/rules.c
 * fuzz-sources: src/model/sandbox.c src/model/secret.c
 * fuzz-sources: src/model/template.c src/wire/rule.c src/base/address.c
 */
#include <stdlib.h>
#include <string.h>

#include "api/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;

static void read_text(const char *text)
{
	sink += text ? strlen(text) : 0;
}

static void read_list(const char *const *list)
{
	for (; list && *list; list++)
		read_text(*list);
}

static void read_spec(const struct execution_spec *spec)
{
	if (!spec->argv || !spec->argv[0] || !spec->argv[0][0])
		abort(); /* a command without a program */
	read_list(spec->argv);
	read_list(spec->env);
	for (const char *const *entry = spec->env; entry && *entry; entry++)
		if (!strchr(*entry, '=') || **entry == '=')
			abort();
	read_text(spec->cwd);
	read_text(spec->user);
	read_text(spec->name);
	for (size_t i = 0; spec->input && i < spec->input_len; i++)
		sink += (unsigned char)spec->input[i];
	if (spec->timeout_ms < 0 || (spec->terminal && (spec->rows == 0 || spec->columns == 0)))
		abort();
	if (spec->cwd && spec->cwd[0] != '/')
		abort();
}

static void read_files(const struct file_spec *files, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		read_text(files[i].path);
		if (files[i].mode > 07777)
			abort();
		for (size_t k = 0; k < files[i].len; k++)
			sink += (unsigned char)files[i].content[k];
	}
}

static int try_exec(const cJSON *body, struct scratch *memory, struct error *e)
{
	struct exec_options options = {0};
	int r = decode_exec(body, memory, &options, e);
	if (r == 0) {
		read_spec(&options.spec);
		read_files(options.files, options.file_count);
	}
	return r;
}

static int try_process(const cJSON *body, struct scratch *memory, struct error *e)
{
	struct execution_spec spec = {.kind = EXECUTION_JOB};
	int r = decode_process(body, memory, &spec, e);
	if (r == 0)
		read_spec(&spec);
	if (r == 0 && spec.kind != EXECUTION_JOB)
		abort();
	return r;
}

static int try_code(const cJSON *body, struct scratch *memory, struct error *e)
{
	struct code_options options = {0};
	int r = decode_code(body, memory, &options, e);
	if (r == 0) {
		read_spec(&options.spec);
		read_text(options.language);
	}
	return r;
}

static int try_create(const cJSON *body, struct scratch *memory, struct error *e)
{
	struct sandbox_spec spec = {0};
	int r = decode_create(body, memory, &spec, e);
	if (r == 0) {
		read_text(spec.name);
		read_text(spec.metadata);
		for (size_t i = 0; i < spec.env.len; i++)
			sink += (unsigned char)spec.env.data[i];
		read_files(spec.files, spec.file_count);
	}
	return r;
}

static int try_run(const cJSON *body, struct scratch *memory, struct error *e)
{
	struct sandbox_spec create = {0};
	struct exec_options exec = {0};
	int r = decode_run(body, memory, &create, &exec, e);
	if (r == 0)
		read_spec(&exec.spec);
	return r;
}

static int try_change(const cJSON *body, struct scratch *memory, struct error *e)
{
	struct sandbox_change change;
	int r = decode_change(body, memory, &change, e);
	if (r == 0) {
		read_list(change.set_env);
		read_list(change.unset_env);
		read_text(change.metadata);
	}
	return r;
}

static int try_env(const cJSON *body, struct scratch *memory, struct error *e)
{
	struct sandbox_change change = {0};
	int r = decode_env_change(body, memory, &change, e);
	if (r == 0) {
		read_list(change.set_env);
		read_list(change.unset_env);
	}
	return r;
}

static int (*const decoders[])(const cJSON *body, struct scratch *memory, struct error *e) = {
	try_exec, try_process, try_code, try_create, try_run, try_change, try_env};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scratch memory = {0};
	struct error e = {0};
	cJSON *body = NULL;
	if (size == 0)
		return 0;
	char *text = malloc(size);
	memcpy(text, data + 1, size - 1);
	if (json_parse(text, size - 1, &body, &e) == 0 && cJSON_IsObject(body)) {
		e = (struct error){0};
		int r = decoders[data[0] % (sizeof decoders / sizeof decoders[0])](
			body, &memory, &e);
		/* Whoever is refused is told why. */
		if (r < 0 && (e.code == ERROR_NONE || !e.message[0]))
			abort();
	}
	cJSON_Delete(body);
	scratch_finish(&memory);
	free(text);
	return 0;
}
