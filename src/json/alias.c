#include "json/alias.h"

#include <assert.h>
#include <string.h>

#include "base/cleanup.h"

const struct field *json_alias_field(const struct json_alias_table *t, const struct json_alias *a)
{
	if (!a->size)
		return NULL;
	int row = field_at(t->model, a->offset);
	assert(row >= 0 && "an alias names a member that has a row");
	return &t->model->fields[row];
}

/* ---- in ---- */

size_t json_alias_rows(
	const struct json_alias_table *t, unsigned flags, struct field rows[JSON_ALIASES_MAX])
{
	size_t n = t->first ? json_alias_rows(t->first, flags, rows) : 0;
	for (const struct json_alias *a = t->aliases; a < t->aliases + t->count; a++) {
		if ((a->flags & flags) != flags)
			continue;
		assert(n < JSON_ALIASES_MAX && a->size && !a->prefix);
		struct field *row = &rows[n++];
		*row = *json_alias_field(t, a);
		assert(!a->names || row->kind == FIELD_ENUM);
		row->name = a->name;
		row->flags = a->flags;
		row->scale = a->scale;
		row->check = NULL;
		if (a->names)
			row->names = a->names;
		if (a->min || a->max) {
			row->min = a->min;
			row->max = a->max;
		}
	}
	return n;
}

/* ---- out ---- */

/* Looks at no field: most of what an answer does not have is left out before one is searched. */
static bool alias_is_shown(const struct json_alias *a, const void *record)
{
	bool is_request = (a->flags & (FIELD_CREATE | FIELD_CHANGE)) && !(a->flags & FIELD_SHOWN);
	return !is_request && (!a->shown_if || a->shown_if(record));
}

static void alias_put_prefixed(struct json_writer *w, const char *prefix, const char *text)
{
	autobuf whole = {0};
	buf_append_str(&whole, prefix);
	buf_append_str(&whole, text);
	json_string_n(w, whole.data, whole.len);
	w->out->failed |= whole.failed;
}

static void alias_put_value(struct json_writer *w, const struct json_alias *a,
	const struct field *f, const void *record)
{
	if (a->put)
		a->put(w, f, record);
	else if (a->constant)
		json_raw(w, a->constant);
	else if (a->names)
		json_string(w, a->names[field_number(f, record)]);
	else if (a->prefix)
		alias_put_prefixed(w, a->prefix, field_text(f, record));
	else if (a->scale)
		json_int(w, field_number(f, record) / a->scale);
	else
		json_encode_value(w, f, record);
}

static void alias_put_members(struct json_writer *w, struct json_path *path,
	const struct json_alias_table *t, const void *record)
{
	if (t->first)
		alias_put_members(w, path, t->first, record);
	for (const struct json_alias *a = t->aliases; a < t->aliases + t->count; a++) {
		if (!alias_is_shown(a, record))
			continue;
		const struct field *f = json_alias_field(t, a);
		bool is_empty = a->empty && field_is_empty(f, record);
		if (is_empty && a->empty == JSON_EMPTY_OMITTED)
			continue;
		json_path_key(w, path, a->name);
		if (is_empty)
			json_null(w);
		else
			alias_put_value(w, a, f, record);
	}
}

void json_encode_alias(struct json_writer *w, const struct json_alias_table *t, const void *record)
{
	struct json_path path = {0};
	alias_put_members(w, &path, t, record);
	json_path_end(w, &path);
}

void json_encode_alias_object(
	struct json_writer *w, const struct json_alias_table *t, const void *record)
{
	json_begin_object(w);
	json_encode_alias(w, t, record);
	json_end_object(w);
}
