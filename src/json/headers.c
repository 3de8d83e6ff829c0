/* Header rules: an array of {host, headers} in JSON, texts "HOST NAME: VALUE" elsewhere. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "json/json.h"

#define HEADERS_MAX 1000 /* of one object; what there may be of them is the model's business */

struct headers_item {
	const char *host;
	const cJSON *headers;
};

static const struct json_field item_fields[] = {
	{"host", FIELD_TEXT, offsetof(struct headers_item, host), FIELD_REQUIRED | FIELD_NOT_EMPTY,
		0, 255},
	{"headers", FIELD_STRING_MAP, offsetof(struct headers_item, headers),
		FIELD_REQUIRED | FIELD_NOT_EMPTY, 0, HEADERS_MAX},
};

/* What would be read back as something else is refused here. */
static int headers_check(const struct headers_item *item, const char *path, struct error *e)
{
	const cJSON *header;
	char field[96];
	snprintf(field, sizeof field, "%shost", path);
	if (strpbrk(item->host, " \t"))
		return error_set_field(
			e, ERROR_INVALID_FIELD, field, "\"%s\" must be a name or *.name", field);
	snprintf(field, sizeof field, "%sheaders", path);
	cJSON_ArrayForEach(header, item->headers)
	{
		if (!header->string[0] || strpbrk(header->string, " \t:"))
			return error_set_field(e, ERROR_INVALID_FIELD, field,
				"\"%s\" has a name that is none of a header", field);
	}
	return 0;
}

static void headers_append(struct buf *out, const struct headers_item *item)
{
	const cJSON *header;
	cJSON_ArrayForEach(header, item->headers)
	{
		buf_append_str(out, item->host);
		buf_append_char(out, ' ');
		buf_append_str(out, header->string);
		buf_append_str(out, ": ");
		buf_append(out, header->valuestring, strlen(header->valuestring) + 1);
	}
}

int json_headers_decode(const cJSON *array, const char *field, struct scratch *memory,
	struct strings *ret, struct error *e)
{
	autobuf out = {0};
	const cJSON *entry;
	size_t i = 0;
	cJSON_ArrayForEach(entry, array)
	{
		struct headers_item item = {0};
		char path[80];
		snprintf(path, sizeof path, "%.60s[%zu].", field, i++);
		if (!cJSON_IsObject(entry))
			return error_set_field(e, ERROR_INVALID_FIELD, field,
				"\"%s\" must hold objects with \"host\" and \"headers\"", field);
		if (json_decode(entry, item_fields, ARRAY_LEN(item_fields), path, &item, e) < 0 ||
			headers_check(&item, path, e) < 0)
			return -1;
		headers_append(&out, &item);
	}
	buf_require(&out);
	*ret = (struct strings){scratch_alloc(memory, out.len + 1), out.len};
	if (out.len > 0)
		memcpy(ret->data, out.data, out.len);
	return 0;
}

static void headers_open(struct json_writer *w, const char *host, size_t len)
{
	autofree char *name = mem_copy_text_n(host, len);
	json_begin_object(w);
	json_put_string(w, "host", name);
	json_key(w, "headers");
	json_begin_object(w);
}

static void headers_close(struct json_writer *w)
{
	json_end_object(w);
	json_end_object(w);
}

void json_headers(struct json_writer *w, const struct strings *list)
{
	const char *host = NULL;
	size_t host_len = 0;
	json_begin_array(w);
	for (size_t at = 0; at < list->len; at += strlen(list->data + at) + 1) {
		const char *text = list->data + at;
		size_t len = strcspn(text, " "), name_len = strcspn(text + len, ":");
		const char *value = text + len + name_len;
		if (len == 0 || name_len < 2 || !*value)
			continue;
		if (!host || len != host_len || memcmp(text, host, len) != 0) {
			if (host)
				headers_close(w);
			headers_open(w, text, len);
		}
		host = text;
		host_len = len;
		json_key_n(w, text + len + 1, name_len - 1);
		json_string(w, value + 1 + strspn(value + 1, " \t"));
	}
	if (host)
		headers_close(w);
	json_end_array(w);
}
