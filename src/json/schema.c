/* Writes a table as JSON Schema: for OpenAPI, for tools that models call, for generated forms. */
#include <stdio.h>
#include <string.h>

#include "json/json.h"

static void put_limits(struct json_writer *w, const struct field *f)
{
	if (f->min || f->max) {
		json_put_int(w, "minimum", f->min);
		json_put_int(w, "maximum", f->max);
	}
}

static void put_cores(struct json_writer *w, const struct field *f)
{
	char text[32];
	snprintf(text, sizeof text, "%g", (double)f->min / 1000);
	json_key(w, "minimum");
	json_raw(w, text);
	snprintf(text, sizeof text, "%g", (double)f->max / 1000);
	json_key(w, "maximum");
	json_raw(w, text);
}

/* Amounts may be numbers in a request; in an answer they are texts with a unit. */
static void json_schema_put_amount(struct json_writer *w, const struct field *f, bool is_request)
{
	if (!is_request) {
		json_put_string(w, "type", "string");
		return;
	}
	json_key(w, "oneOf");
	json_begin_array(w);
	json_begin_object(w);
	json_put_string(w, "type", "string");
	json_end_object(w);
	json_begin_object(w);
	json_put_string(w, "type", f->kind == FIELD_CPU ? "number" : "integer");
	if (f->kind == FIELD_CPU)
		put_cores(w, f);
	else
		put_limits(w, f);
	json_end_object(w);
	json_end_array(w);
}

static void json_schema_put_names(struct json_writer *w, const struct field *f)
{
	json_put_string(w, "type", "string");
	json_key(w, "enum");
	json_begin_array(w);
	for (const char *const *name = f->names; *name; name++)
		json_string(w, *name);
	json_end_array(w);
}

static void put_map(struct json_writer *w, const struct field *f, bool is_request)
{
	json_put_string(w, "type", "object");
	if (is_request && f->max && f->kind == FIELD_ENV)
		json_put_int(w, "maxProperties", f->max);
	json_key(w, "additionalProperties");
	if (f->kind == FIELD_JSON) {
		json_bool(w, true);
		return;
	}
	json_begin_object(w);
	json_put_string(w, "type", "string");
	json_end_object(w);
}

static void json_schema_put_text(struct json_writer *w, const struct field *f, bool is_request)
{
	json_put_string(w, "type", "string");
	if (is_request && f->flags & FIELD_NOT_EMPTY)
		json_put_int(w, "minLength", 1);
	if (is_request && f->max)
		json_put_int(w, "maxLength", f->max);
	if (f->kind == FIELD_TIME)
		json_put_string(w, "format", "date-time");
	if (f->kind == FIELD_CONSTANT)
		json_put_string(w, "const", f->missing);
}

static void put_property(struct json_writer *w, const struct field *f, bool is_request)
{
	json_begin_object(w);
	switch (f->kind) {
	case FIELD_BOOL:
		json_put_string(w, "type", "boolean");
		break;
	case FIELD_INTEGER:
	case FIELD_COUNT:
		json_put_string(w, "type", "integer");
		if (is_request)
			put_limits(w, f);
		break;
	case FIELD_MICROS:
		json_put_string(w, "type", "number");
		break;
	case FIELD_BYTES:
	case FIELD_CPU:
		json_schema_put_amount(w, f, is_request);
		break;
	case FIELD_ENUM:
		json_schema_put_names(w, f);
		break;
	case FIELD_ENV:
	case FIELD_JSON:
		put_map(w, f, is_request);
		break;
	case FIELD_DURATION:
		json_put_string(w, "type", "string");
		break;
	case FIELD_LIST:
	case FIELD_HEADERS:
	case FIELD_OWN:
		json_put_string(w, "type", "array");
		break;
	default:
		json_schema_put_text(w, f, is_request);
	}
	if (f->about)
		json_put_string(w, "description", f->about);
	json_end_object(w);
}

/* One object of a schema: the rows below `prefix`, such as "timeout.", that carry `flags`. */
struct level {
	const struct field_table *table;
	unsigned flags;
	const char *prefix;
	size_t prefix_len;
};

/* Returns the row's name behind the prefix, or NULL if the row is not in the level. */
static const char *level_name(const struct level *l, const struct field *f)
{
	if (!f->name || (f->flags & l->flags) != l->flags ||
		strncmp(f->name, l->prefix, l->prefix_len) != 0)
		return NULL;
	return f->name + l->prefix_len;
}

/* Tells whether a name is in the same inner object as the name before it. */
static bool level_goes_on(const char *name, const char *before)
{
	size_t len = before ? strcspn(before, ".") : 0;
	return len && before[len] && strncmp(name, before, len + 1) == 0;
}

static void put_level(struct json_writer *w, const struct level *l);

static void put_members(struct json_writer *w, const struct level *l)
{
	const struct field_table *t = l->table;
	const char *before = NULL;
	for (const struct field *f = t->fields; f < t->fields + t->count; f++) {
		const char *name = level_name(l, f);
		if (!name || level_goes_on(name, before))
			continue;
		size_t len = strcspn(name, ".");
		before = name;
		json_key_n(w, name, len);
		if (!name[len]) {
			put_property(w, f, !(l->flags & FIELD_SHOWN));
			continue;
		}
		json_begin_object(w);
		put_level(w, &(struct level){t, l->flags, f->name, l->prefix_len + len + 1});
		json_end_object(w);
	}
}

/* Whether an answer always has the member, or a request must. */
static bool is_always_there(const struct field *f, bool is_request, bool is_object)
{
	if (is_request)
		return f->flags & FIELD_REQUIRED;
	return is_object || !(f->flags & FIELD_OMIT_EMPTY || f->shown_if);
}

static void put_required(struct json_writer *w, const struct level *l)
{
	const struct field_table *t = l->table;
	const char *before = NULL;
	for (const struct field *f = t->fields; f < t->fields + t->count; f++) {
		const char *name = level_name(l, f);
		size_t len = name ? strcspn(name, ".") : 0;
		if (!name || level_goes_on(name, before) ||
			!is_always_there(f, !(l->flags & FIELD_SHOWN), name[len]))
			continue;
		before = name;
		json_string_n(w, name, len);
	}
}

/* Writes the schema of one object; objects inside it are levels of their own. */
static void put_level(struct json_writer *w, const struct level *l)
{
	bool is_request = !(l->flags & FIELD_SHOWN);
	json_put_string(w, "type", "object");
	if (is_request)
		json_put_bool(w, "additionalProperties", false);
	json_key(w, "properties");
	json_begin_object(w);
	put_members(w, l);
	json_end_object(w);
	json_key(w, "required");
	json_begin_array(w);
	put_required(w, l);
	json_end_array(w);
}

void json_schema(struct json_writer *w, const struct field_table *t, unsigned flags)
{
	json_begin_object(w);
	put_level(w, &(struct level){t, flags, "", 0});
	json_end_object(w);
}
