/* Values that bodies of several APIs have in common. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "json/json.h"

static int check_env_name(const char *name, const char *field, struct error *e)
{
	static const char rest[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	bool digit_first = name[0] >= '0' && name[0] <= '9';
	size_t len = strlen(name);
	if (len > 0 && !digit_first && strspn(name, rest) == len)
		return 0;
	return error_set_field(e, ERROR_INVALID_FIELD, field,
		"'%.64s' is not a valid name of an environment variable", name);
}

int json_environment(const cJSON *map, const char *field, struct scratch *memory,
	const char *const **ret, struct error *e)
{
	size_t n = 0;
	const cJSON *item;
	if (!map)
		return 0;
	const char **env =
		scratch_alloc(memory, ((size_t)cJSON_GetArraySize(map) + 1) * sizeof *env);
	cJSON_ArrayForEach(item, map)
	{
		if (check_env_name(item->string, field, e) < 0)
			return -1;
		size_t size = strlen(item->string) + strlen(item->valuestring) + 2;
		char *entry = scratch_alloc(memory, size);
		snprintf(entry, size, "%s=%s", item->string, item->valuestring);
		env[n++] = entry;
	}
	*ret = env;
	return 0;
}

int json_strings(const cJSON *map, const char *field, struct scratch *memory, struct strings *ret,
	struct error *e)
{
	size_t size = 0;
	const cJSON *item;
	cJSON_ArrayForEach(item, map)
	{
		if (check_env_name(item->string, field, e) < 0)
			return -1;
		size += strlen(item->string) + strlen(item->valuestring) + 2;
	}
	if (!map)
		return 0;
	ret->data = scratch_alloc(memory, size + 1);
	ret->len = 0;
	cJSON_ArrayForEach(item, map) ret->len +=
		1 + (size_t)snprintf(ret->data + ret->len, size + 1 - ret->len, "%s=%s",
			    item->string, item->valuestring);
	return 0;
}

int json_text(const cJSON *value, const char *field, size_t max, struct scratch *memory,
	const char **ret, struct error *e)
{
	if (!value)
		return 0;
	autofree char *text = cJSON_PrintUnformatted(value);
	size_t size = text ? strlen(text) + 1 : 0;
	if (!text || size > max)
		return error_set_field(e, ERROR_INVALID_FIELD, field,
			"\"%s\" is longer than %zu bytes", field, max);
	char *copy = scratch_alloc(memory, size);
	memcpy(copy, text, size);
	*ret = copy;
	return 0;
}

int json_bytes(const char *base64, const char *field, struct scratch *memory, const char **bytes,
	size_t *len, struct error *e)
{
	size_t text_len = strlen(base64);
	unsigned char *decoded = scratch_alloc(memory, text_len + 1);
	const char *end = NULL;
	if (sodium_base642bin(decoded, text_len + 1, base64, text_len, "\r\n", len, &end,
		    sodium_base64_VARIANT_ORIGINAL) != 0 ||
		*end)
		return error_set_field(
			e, ERROR_INVALID_FIELD, field, "\"%s\" is not valid base64", field);
	*bytes = (const char *)decoded;
	return 0;
}
