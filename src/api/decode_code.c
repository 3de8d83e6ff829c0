/* The body of POST …/code. */
#include <stddef.h>
#include <string.h>

#include "api/decode.h"
#include "base/cleanup.h"

#define CODE_MAX     (4 << 20)
#define ARGUMENT_MAX (96u * 1024) /* the kernel takes 128 KiB in one argument */
#define SECONDS_MAX  (24 * 3600)

/* Gives a program text to an interpreter by an argument or by stdin. */
static const struct language {
	const char *name, *program;
	const char *by_argument, *by_stdin;
} languages[] = {
	{"python", "python3", "-c", "-"},
	{"node", "node", "-e", "-"},
	{"shell", "/bin/sh", "-c", "-s"},
};

struct code_body {
	const char *language, *code, *cwd, *user;
	const cJSON *env;
	int64_t seconds;
};

static const struct json_field code_fields[] = {
	{"language", FIELD_TEXT, offsetof(struct code_body, language), FIELD_REQUIRED, 0, 16},
	{"code", FIELD_TEXT, offsetof(struct code_body, code), FIELD_REQUIRED, 0, CODE_MAX},
	{"timeoutSeconds", FIELD_INTEGER, offsetof(struct code_body, seconds), 0, 1, SECONDS_MAX},
	{"cwd", FIELD_TEXT, offsetof(struct code_body, cwd), FIELD_NOT_EMPTY, 0, 4095},
	{"user", FIELD_TEXT, offsetof(struct code_body, user), FIELD_NOT_EMPTY, 0, 63},
	{"env", FIELD_STRING_MAP, offsetof(struct code_body, env), 0, 0, 1000},
};

static const struct language *language_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(languages); i++)
		if (strcmp(languages[i].name, name) == 0)
			return &languages[i];
	return NULL;
}

static void set_command(const struct language *l, const char *code, struct scratch *memory,
	struct execution_spec *spec)
{
	const char **argv = scratch_alloc(memory, 4 * sizeof *argv);
	size_t len = strlen(code);
	argv[0] = l->program;
	argv[1] = len <= ARGUMENT_MAX ? l->by_argument : l->by_stdin;
	if (len <= ARGUMENT_MAX) {
		argv[2] = code;
	} else {
		spec->input = code;
		spec->input_len = len;
	}
	spec->argv = argv;
}

int decode_code(
	const cJSON *body, struct scratch *memory, struct code_options *ret, struct error *e)
{
	struct code_body fields = {0};
	if (json_decode(body, code_fields, ARRAY_LEN(code_fields), "", &fields, e) < 0 ||
		decode_place(fields.user, fields.cwd, e) < 0 ||
		json_environment(fields.env, "env", memory, &ret->spec.env, e) < 0)
		return -1;
	const struct language *l = language_of(fields.language);
	if (!l)
		return error_set_field(e, ERROR_INVALID_FIELD, "language",
			"\"language\" must be \"python\", \"node\" or \"shell\"");
	ret->language = l->name;
	ret->spec.user = fields.user;
	ret->spec.cwd = fields.cwd;
	ret->spec.timeout_ms = fields.seconds * 1000;
	set_command(l, fields.code, memory, &ret->spec);
	return 0;
}
