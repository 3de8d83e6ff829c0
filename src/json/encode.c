/* An object written by its table: the counterpart of json_decode.c. */
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "json/json.h"

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

/* The object that the rows being written are in: "timeout." of "timeout.idle". */
struct group {
	const char *name;
	size_t len; /* with the dot; 0: none */
};

static void json_encode_enter(struct json_writer *w, struct group *g, const char *name, size_t len)
{
	if (len == g->len && (len == 0 || memcmp(name, g->name, len) == 0))
		return;
	if (g->len)
		json_end_object(w);
	*g = (struct group){name, len};
	if (!len)
		return;
	json_key_plain(w, name, len - 1);
	json_begin_object(w);
}

void json_encode(
	struct json_writer *w, const struct field_table *t, const void *record, json_own_fn *own)
{
	struct group group = {0};
	for (const struct field *f = t->fields; f < t->fields + t->count; f++) {
		if (!(f->flags & FIELD_SHOWN))
			continue;
		const char *name = f->name;
		size_t len = 0, dot = 0;
		for (; name[len]; len++)
			dot = name[len] == '.' ? len + 1 : dot;
		json_encode_enter(w, &group, name, dot);
		if (f->kind == FIELD_OWN) {
			own(w, f, record);
		} else if (!(f->flags & FIELD_OMIT_EMPTY) || !field_is_empty(f, record)) {
			json_key_plain(w, name + dot, len - dot);
			json_encode_value(w, f, record);
		}
	}
	if (group.len)
		json_end_object(w);
}
