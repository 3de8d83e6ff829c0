#include "client/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void decode_string(const cJSON *value, void *destination)
{
	*(const char **)destination = cJSON_IsString(value) ? value->valuestring : "";
}

static void decode_bool(const cJSON *value, void *destination)
{
	*(bool *)destination = cJSON_IsTrue(value);
}

static void decode_integer(const cJSON *value, void *destination)
{
	const double limit = 9007199254740992.0; /* 2^53: beyond, a double is not the number sent */
	if (cJSON_IsNumber(value) && value->valuedouble >= -limit && value->valuedouble <= limit)
		*(int64_t *)destination = (int64_t)value->valuedouble;
}

static void decode_number(const cJSON *value, void *destination)
{
	if (cJSON_IsNumber(value))
		*(double *)destination = value->valuedouble;
}

static void (*const decoders[])(const cJSON *value, void *destination) = {
	[ANSWER_STRING] = decode_string,
	[ANSWER_BOOL] = decode_bool,
	[ANSWER_INTEGER] = decode_integer,
	[ANSWER_NUMBER] = decode_number,
};

void client_answer_decode(
	const cJSON *object, const struct answer_field *fields, size_t count, void *destination)
{
	for (size_t i = 0; i < count; i++) {
		const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, fields[i].name);
		decoders[fields[i].kind](value, (char *)destination + fields[i].offset);
	}
}

int client_answer_pairs(const cJSON *object, struct bunker_pair **ret, size_t *ret_count)
{
	size_t size = (size_t)cJSON_GetArraySize(object), count = 0;
	struct bunker_pair *pairs = calloc(size + 1, sizeof *pairs);
	if (!pairs)
		return -1;
	for (const cJSON *member = object ? object->child : NULL; member; member = member->next)
		if (cJSON_IsString(member) && member->string)
			pairs[count++] = (struct bunker_pair){member->string, member->valuestring};
	*ret = pairs;
	*ret_count = count;
	return 0;
}

static const cJSON *answer_find(const struct bunker_json *json, const char *name)
{
	const cJSON *value = client_answer_from_json(json);
	while (value && *name) {
		char key[64];
		size_t len = strcspn(name, ".");
		snprintf(key, sizeof key, "%.*s", (int)len, name);
		value = cJSON_GetObjectItemCaseSensitive(value, key);
		name += len + (name[len] == '.');
	}
	return value;
}

void client_answer_list(const struct bunker_json *json, const char *name, struct buf *out)
{
	const cJSON *list = answer_find(json, name), *item;
	cJSON_ArrayForEach(item, list)
	{
		if (cJSON_IsString(item))
			buf_printf(out, "%s%s", out->len ? ", " : "", item->valuestring);
	}
	buf_append_char(out, '\0');
}

void client_answer_headers(const struct bunker_json *json, const char *name, struct buf *out)
{
	const cJSON *list = answer_find(json, name), *item, *header;
	cJSON_ArrayForEach(item, list)
	{
		const cJSON *host = cJSON_GetObjectItemCaseSensitive(item, "host");
		cJSON_ArrayForEach(header, cJSON_GetObjectItemCaseSensitive(item, "headers"))
		{
			if (cJSON_IsString(host) && cJSON_IsString(header))
				buf_printf(out, "%s%s %s: %s", out->len ? ", " : "",
					host->valuestring, header->string, header->valuestring);
		}
	}
	buf_append_char(out, '\0');
}

const char *client_answer_text(const struct bunker_json *json, const char *name, char number[32])
{
	const cJSON *value = answer_find(json, name);
	if (!value)
		return NULL;
	if (cJSON_IsNumber(value))
		snprintf(number, 32, "%.15g", value->valuedouble);
	return cJSON_IsString(value) ? value->valuestring : cJSON_IsNumber(value) ? number : NULL;
}

char *bunker_json_text(const struct bunker_json *json)
{
	return cJSON_PrintUnformatted(client_answer_from_json(json));
}

void bunker_json_free(struct bunker_json *json)
{
	cJSON_Delete(client_answer_from_json(json));
}
