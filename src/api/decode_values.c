/* Single values and lists of bodies, each checked once and named in its error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/decode_parts.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "model/check.h"

#define ARGUMENTS_MAX 4000

struct file_body {
	const char *path, *content, *encoding, *mode;
};

static const struct json_field file_fields[] = {
	{"path", FIELD_TEXT, AT(file_body, path), FIELD_REQUIRED | FIELD_NOT_EMPTY, 0,
		PATH_LEN_MAX},
	{"content", FIELD_TEXT, AT(file_body, content), FIELD_REQUIRED, 0, 32 << 20},
	{"encoding", FIELD_TEXT, AT(file_body, encoding), 0, 0, 16},
	{"mode", FIELD_TEXT, AT(file_body, mode), 0, 0, 5},
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

int decode_bytes(const char *text, bool base64, const char *field, struct scratch *memory,
	const char **bytes, size_t *len, struct error *e)
{
	if (base64)
		return json_bytes(text, field, memory, bytes, len, e);
	*bytes = text;
	*len = strlen(text);
	return 0;
}

int decode_path(const char *path, const char *field, bool absolute, struct error *e)
{
	return absolute ? check_absolute_path(path, field, e) : check_path(path, field, e);
}

int decode_place(const char *user, const char *cwd, struct error *e)
{
	if (user && check_user(user, "user", e) < 0)
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

static int decode_values_decode_file(const cJSON *item, size_t index, struct scratch *memory,
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

int decode_files(const cJSON *list, struct scratch *memory, struct file_spec **ret, size_t *count,
	struct error *e)
{
	const cJSON *item;
	*count = 0;
	if (!list)
		return 0;
	*ret = scratch_alloc(memory, ((size_t)cJSON_GetArraySize(list) + 1) * sizeof **ret);
	cJSON_ArrayForEach(item, list)
	{
		if (decode_values_decode_file(item, *count, memory, &(*ret)[*count], e) < 0)
			return -1;
		(*count)++;
	}
	return 0;
}

static int decode_values_decode_argv(const cJSON *list, const char **argv, struct error *e)
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

int decode_command(
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
		return decode_values_decode_argv(command, argv, e);
	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = command->valuestring;
	return 0;
}

int decode_timeout_text(const cJSON *value, int64_t *ms, struct error *e)
{
	if (!cJSON_IsString(value) || units_parse_duration_ms(value->valuestring, ms) < 0 ||
		*ms > DURATION_MAX_MS)
		return error_set_field(e, ERROR_INVALID_FIELD, "timeout",
			"\"timeout\" must be a duration such as \"30s\" or \"1h30m\"");
	return 0;
}
