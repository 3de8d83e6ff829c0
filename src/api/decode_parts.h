/* Shared by the files that decode bodies. */
#pragma once

#include <stddef.h>

#include "api/decode.h"

#define FILES_MAX       1000
#define ENV_MAX         1000
#define PATH_LEN_MAX    4095
#define DURATION_MAX_MS (INT64_C(365) * 24 * 3600 * 1000)

#define AT(type, member) offsetof(struct type, member)

/* ---- decode_exec.c: what an exec and a run have in common ---- */

struct exec_body {
	const cJSON *command, *env, *files, *timeout;
	const char *cwd, *user, *input, *input_encoding, *encoding;
};

#define EXEC_ONLY_FIELDS(type, in)                                                                 \
	{"command", FIELD_ANY, AT(type, in command), FIELD_REQUIRED, 0, 0},                        \
		{"cwd", FIELD_TEXT, AT(type, in cwd), FIELD_NOT_EMPTY, 0, PATH_LEN_MAX},           \
		{"stdin", FIELD_TEXT, AT(type, in input), 0, 0, 32 << 20},                         \
		{"stdinEncoding", FIELD_TEXT, AT(type, in input_encoding), 0, 0, 16},

int decode_exec_fields(const struct exec_body *body, struct scratch *memory,
	struct exec_options *ret, struct error *e);

/* ---- decode_values.c ---- */

/* Bytes as they were meant; text is used as it is. */
int decode_bytes(const char *text, bool base64, const char *field, struct scratch *memory,
	const char **bytes, size_t *len, struct error *e);
int decode_files(const cJSON *list, struct scratch *memory, struct file_spec **ret, size_t *count,
	struct error *e);
/* A list is argv as it is; a string is a line for the shell. */
int decode_command(
	const cJSON *command, struct scratch *memory, const char *const **ret, struct error *e);
/* "30s", of the field timeout. */
int decode_timeout_text(const cJSON *value, int64_t *ms, struct error *e);
