/* An object written by its table: the counterpart of json_decode.c. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "json/json.h"

static_assert(UNITS_TEXT_SIZE >= FIELD_CODE_SIZE, "both are written into the same text");

static void json_encode_write_number(struct json_writer *w, const struct field *f, int64_t number)
{
	char text[UNITS_TEXT_SIZE];
	switch (f->kind) {
	case FIELD_BOOL:
		json_bool(w, number != 0);
		return;
	case FIELD_DURATION:
		units_format_duration_ms(number, text);
		break;
	case FIELD_BYTES:
		units_format_size(number, text);
		break;
	case FIELD_CPU:
		units_format_millicores(number, text);
		break;
	case FIELD_TIME:
		json_time(w, number);
		return;
	case FIELD_MICROS:
		snprintf(text, sizeof text, "%lld.%03d", (long long)(number / 1000),
			(int)(number % 1000));
		json_raw(w, text);
		return;
	case FIELD_CODE:
		f->format(number, text);
		break;
	default:
		json_int(w, number);
		return;
	}
	json_string(w, text);
}

void json_encode_value(struct json_writer *w, const struct field *f, const void *record)
{
	const struct strings *list = (const void *)((const char *)record + f->offset);
	switch (f->kind) {
	case FIELD_ENV:
		json_env(w, list->data, list->len);
		break;
	case FIELD_LIST:
		json_begin_array(w);
		for (size_t at = 0; at < list->len; at += strlen(list->data + at) + 1)
			json_string(w, list->data + at);
		json_end_array(w);
		break;
	case FIELD_HEADERS:
		json_headers(w, list);
		break;
	case FIELD_JSON:
		json_raw(w, field_text(f, record));
		break;
	case FIELD_TEXT:
	case FIELD_CHARS:
	case FIELD_ENUM:
	case FIELD_CONSTANT:
		json_string(w, field_text(f, record));
		break;
	default:
		json_encode_write_number(w, f, field_number(f, record));
	}
}

void json_path_enter(struct json_writer *w, struct json_path *path, const char *name, size_t len)
{
	size_t same = 0;
	if (len == path->len && (len == 0 || memcmp(name, path->name, len) == 0))
		return;
	for (size_t i = 0; i < len && i < path->len && name[i] == path->name[i]; i++)
		same = name[i] == '.' ? i + 1 : same;
	for (size_t i = same; i < path->len; i++)
		if (path->name[i] == '.')
			json_end_object(w);
	for (size_t i = same; i < len; i++) {
		if (name[i] != '.')
			continue;
		json_key_plain(w, name + same, i - same);
		json_begin_object(w);
		same = i + 1;
	}
	*path = (struct json_path){name, len};
}

/* The length of a name, and of the objects in front of its last part. */
static size_t path_split(const char *name, size_t *objects)
{
	size_t len = 0;
	*objects = 0;
	for (; name[len]; len++)
		*objects = name[len] == '.' ? len + 1 : *objects;
	return len;
}

void json_path_key(struct json_writer *w, struct json_path *path, const char *name)
{
	size_t objects, len = path_split(name, &objects);
	json_path_enter(w, path, name, objects);
	json_key_plain(w, name + objects, len - objects);
}

void json_path_end(struct json_writer *w, struct json_path *path)
{
	json_path_enter(w, path, "", 0);
}

void json_encode(
	struct json_writer *w, const struct field_table *t, const void *record, json_own_fn *own)
{
	struct json_path path = {0};
	for (const struct field *f = t->fields; f < t->fields + t->count; f++) {
		if (!(f->flags & FIELD_SHOWN) || (f->shown_if && !f->shown_if(record)))
			continue;
		size_t objects, len = path_split(f->name, &objects);
		json_path_enter(w, &path, f->name, objects);
		if (f->kind == FIELD_OWN) {
			own(w, f, record);
		} else if (!(f->flags & FIELD_OMIT_EMPTY) || !field_is_empty(f, record)) {
			json_key_plain(w, f->name + objects, len - objects);
			json_encode_value(w, f, record);
		}
	}
	json_path_end(w, &path);
}

void json_encode_object(
	struct json_writer *w, const struct field_table *t, const void *record, json_own_fn *own)
{
	json_begin_object(w);
	json_encode(w, t, record, own);
	json_end_object(w);
}
