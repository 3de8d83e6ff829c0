/* Bodies about commands: exec, processes and jobs. */
#include <string.h>

#include "api/decode_parts.h"
#include "base/cleanup.h"
#include "model/check.h"

#define TERMINAL_SIDE_MAX 1000

static const struct json_field exec_fields[] = {
	EXEC_ONLY_FIELDS(exec_body, ){"encoding", FIELD_TEXT, AT(exec_body, encoding), 0, 0, 16},
	{"env", FIELD_STRING_MAP, AT(exec_body, env), 0, 0, ENV_MAX},
	{"files", FIELD_ARRAY, AT(exec_body, files), 0, 0, FILES_MAX},
	{"timeout", FIELD_ANY, AT(exec_body, timeout), 0, 0, 0},
	{"user", FIELD_TEXT, AT(exec_body, user), FIELD_NOT_EMPTY, 0, 63},
};

struct process_body {
	struct exec_body exec;
	const char *name;
	const cJSON *pty;
	bool open_stdin;
};

static const struct json_field process_fields[] = {
	EXEC_ONLY_FIELDS(process_body, exec.){
		"env", FIELD_STRING_MAP, AT(process_body, exec.env), 0, 0, ENV_MAX},
	{"timeout", FIELD_ANY, AT(process_body, exec.timeout), 0, 0, 0},
	{"user", FIELD_TEXT, AT(process_body, exec.user), FIELD_NOT_EMPTY, 0, 63},
	{"name", FIELD_TEXT, AT(process_body, name), 0, 0, 63},
	{"openStdin", FIELD_BOOL, AT(process_body, open_stdin), 0, 0, 0},
	{"pty", FIELD_ANY, AT(process_body, pty), 0, 0, 0},
};

struct size_body {
	int64_t rows, columns;
};

static const struct json_field size_fields[] = {
	{"rows", FIELD_INTEGER, AT(size_body, rows), 0, 1, TERMINAL_SIDE_MAX},
	{"columns", FIELD_INTEGER, AT(size_body, columns), 0, 1, TERMINAL_SIDE_MAX},
};

int decode_exec_fields(const struct exec_body *body, struct scratch *memory,
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

int decode_exec(
	const cJSON *body, struct scratch *memory, struct exec_options *ret, struct error *e)
{
	struct exec_body fields = {0};
	if (json_decode(body, exec_fields, ARRAY_LEN(exec_fields), "", &fields, e) < 0)
		return -1;
	if (fields.timeout && decode_timeout_text(fields.timeout, &ret->spec.timeout_ms, e) < 0)
		return -1;
	return decode_exec_fields(&fields, memory, ret, e);
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
	return name ? check_name(name, "name", e) : 0;
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
		decode_exec_fields(&fields.exec, memory, &options, e) < 0 ||
		decode_pty(fields.pty, &options.spec, e) < 0)
		return -1;
	*ret = options.spec;
	ret->name = fields.name && fields.name[0] ? fields.name : NULL;
	ret->open_stdin = fields.open_stdin;
	return 0;
}
