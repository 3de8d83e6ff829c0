/*
 * Fills a struct from an object by a table of fields. Each kind is one small function that knows
 * what it accepts and how to say what it wanted; the field's full name, with the path in front, is
 * in every message.
 */
#include "json/json.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"

#define LENGTH_DEFAULT 65536
/* Beyond, a double does not hold every integer, so that the client may have meant another one. */
#define INTEGER_MAX 9007199254740992.0 /* 2^53 */

/* The tables and options that an object is decoded with. */
struct decoding {
	const struct json_part *parts;
	struct scratch *memory;
	const char *path; /* in front of every name, for errors only */
	bool is_strict;
};

/* The field being decoded, with its name as the client knows it. */
struct decoded_field {
	const struct field *field;
	struct scratch *memory;
	char name[160];
	void *to;
};

static int decode_level(
	const struct decoding *d, const cJSON *object, const char *prefix, struct error *e);
static int json_decode_item(
	const struct decoding *d, const cJSON *item, const char *prefix, struct error *e);
static int check_required(
	const struct decoding *d, const cJSON *object, const char *prefix, struct error *e);
static const struct json_field *row_at(const struct json_part *part, size_t i);
static int find_row(
	const struct json_part *part, const char *prefix, const char *name, bool *is_group);
static void name_place(
	struct decoded_field *p, const char *path, const char *dot, const char *name);
static int decode_enum(const cJSON *item, const struct decoded_field *p, struct error *e);
static int json_decode_env(const cJSON *item, const struct decoded_field *p, struct error *e);
static int decode_list(const cJSON *item, const struct decoded_field *p, struct error *e);
static int decode_headers(const cJSON *item, const struct decoded_field *p, struct error *e);
static int decode_json(const cJSON *item, const struct decoded_field *p, struct error *e);
static int json_decode_string(const cJSON *item, const struct decoded_field *p, struct error *e);
static int json_decode_bool(const cJSON *item, const struct decoded_field *p, struct error *e);
static int json_decode_integer(const cJSON *item, const struct decoded_field *p, struct error *e);
static int decode_duration(const cJSON *item, const struct decoded_field *p, struct error *e);
static int decode_size(const cJSON *item, const struct decoded_field *p, struct error *e);
static int decode_cpu(const cJSON *item, const struct decoded_field *p, struct error *e);
static int decode_object(const cJSON *item, const struct decoded_field *p, struct error *e);
static int decode_array(const cJSON *item, const struct decoded_field *p, struct error *e);
static int decode_string_map(const cJSON *item, const struct decoded_field *p, struct error *e);
static int decode_any(const cJSON *item, const struct decoded_field *p, struct error *e);
static int check_count(const cJSON *item, const struct decoded_field *p, struct error *e);
static bool whole_number(const cJSON *item, int64_t *ret);
static int put_number(int64_t value, const struct decoded_field *p, struct error *e);
static int put_item(const cJSON *item, const struct decoded_field *p);
static int json_decode_refuse(const struct decoded_field *p, const char *wanted, struct error *e);
static int json_decode_refuse_range(const struct decoded_field *p, struct error *e);
static void format_amount(enum field_kind kind, int64_t value, char out[UNITS_TEXT_SIZE]);
static int64_t max_length(const struct decoded_field *p);

static int (*const decoders[])(
	const cJSON *item, const struct decoded_field *p, struct error *e) = {
	[FIELD_TEXT] = json_decode_string,
	[FIELD_BOOL] = json_decode_bool,
	[FIELD_INTEGER] = json_decode_integer,
	[FIELD_DURATION] = decode_duration,
	[FIELD_BYTES] = decode_size,
	[FIELD_CPU] = decode_cpu,
	[FIELD_OBJECT] = decode_object,
	[FIELD_ARRAY] = decode_array,
	[FIELD_STRING_MAP] = decode_string_map,
	[FIELD_ANY] = decode_any,
	[FIELD_ENUM] = decode_enum,
	[FIELD_ENV] = json_decode_env,
	[FIELD_LIST] = decode_list,
	[FIELD_HEADERS] = decode_headers,
	[FIELD_JSON] = decode_json,
};

int json_decode(const cJSON *object, const struct json_field *fields, size_t count,
	const char *path, void *destination, struct error *e)
{
	const struct json_part parts[] = {{NULL, fields, count, 0, destination, NULL}, {0}};
	return decode_level(&(struct decoding){parts, NULL, path, true}, object, "", e);
}

int json_decode_known(const cJSON *object, const struct json_field *fields, size_t count,
	const char *path, void *destination, struct error *e)
{
	const struct json_part parts[] = {{NULL, fields, count, 0, destination, NULL}, {0}};
	return decode_level(&(struct decoding){parts, NULL, path, false}, object, "", e);
}

int json_decode_parts(
	const cJSON *object, const struct json_part *parts, struct scratch *memory, struct error *e)
{
	return decode_level(&(struct decoding){parts, memory, "", true}, object, "", e);
}

int json_decode_known_parts(
	const cJSON *object, const struct json_part *parts, struct scratch *memory, struct error *e)
{
	return decode_level(&(struct decoding){parts, memory, "", false}, object, "", e);
}

static int decode_level(
	const struct decoding *d, const cJSON *object, const char *prefix, struct error *e)
{
	if (!cJSON_IsObject(object))
		return error_set(e, ERROR_INVALID_JSON, "a JSON object was expected");
	for (const cJSON *item = object->child; d->is_strict && item; item = item->next) {
		bool is_group = false;
		int row = -1;
		for (const struct json_part *part = d->parts; part->destination && row < 0; part++)
			row = find_row(part, prefix, item->string, &is_group);
		struct decoded_field p = {0};
		if (row >= 0 || is_group)
			continue;
		name_place(&p, d->path, prefix, item->string);
		return error_set_field(
			e, ERROR_UNKNOWN_FIELD, p.name, "\"%s\" is not a known field", p.name);
	}
	for (const cJSON *item = object->child; item; item = item->next) {
		int r = cJSON_IsNull(item) ? 0 : json_decode_item(d, item, prefix, e);
		if (r < 0)
			return r;
	}
	return check_required(d, object, prefix, e);
}

static int json_decode_item(
	const struct decoding *d, const cJSON *item, const char *prefix, struct error *e)
{
	bool is_group = false;
	struct decoded_field p = {.memory = d->memory};
	for (const struct json_part *part = d->parts; part->destination; part++) {
		int row = find_row(part, prefix, item->string, &is_group);
		if (row < 0)
			continue;
		struct field whole = {0};
		memcpy(&whole, row_at(part, (size_t)row), sizeof(struct json_field));
		p.field = part->fields ? &part->fields[row] : &whole;
		p.to = (char *)part->destination + p.field->offset;
		name_place(&p, d->path, prefix, item->string);
		if (part->given)
			field_set_add(part->given, (size_t)row);
		return p.field->scale ? json_decode_integer(item, &p, e)
				      : decoders[p.field->kind](item, &p, e);
	}
	if (!is_group)
		return 0;
	name_place(&p, d->path, prefix, item->string);
	if (!cJSON_IsObject(item))
		return json_decode_refuse(&p, "an object", e);
	char inner[sizeof p.name];
	snprintf(inner, sizeof inner, "%s%s.", prefix, item->string);
	return decode_level(d, item, inner, e);
}

/* Returns the part that all kinds of rows begin with. */
static const struct json_field *row_at(const struct json_part *part, size_t i)
{
	return part->fields ? (const struct json_field *)&part->fields[i] : &part->rows[i];
}

/* The row of a member; or, when it is none, whether it holds some of them. */
static int find_row(
	const struct json_part *part, const char *prefix, const char *name, bool *is_group)
{
	size_t prefix_len = strlen(prefix), len = strlen(name);
	size_t stride = part->fields ? sizeof *part->fields : sizeof *part->rows;
	const char *at = part->fields ? (const char *)part->fields : (const char *)part->rows;
	for (size_t i = 0; i < part->count; i++, at += stride) {
		const struct json_field *f = (const void *)at;
		if (!f->name || (f->flags & part->flags) != part->flags ||
			(prefix_len && strncmp(f->name, prefix, prefix_len) != 0) ||
			f->name[prefix_len] != name[0] ||
			strncmp(f->name + prefix_len, name, len) != 0)
			continue;
		if (f->name[prefix_len + len] == '\0')
			return (int)i;
		*is_group |= f->name[prefix_len + len] == '.';
	}
	return -1;
}

static int check_required(
	const struct decoding *d, const cJSON *object, const char *prefix, struct error *e)
{
	size_t prefix_len = strlen(prefix);
	for (const struct json_part *part = d->parts; part->destination; part++)
		for (size_t i = 0; i < part->count; i++) {
			const struct json_field *f = row_at(part, i);
			if (!(f->flags & FIELD_REQUIRED) ||
				strncmp(f->name, prefix, prefix_len) != 0 ||
				strchr(f->name + prefix_len, '.'))
				continue;
			const cJSON *item =
				cJSON_GetObjectItemCaseSensitive(object, f->name + prefix_len);
			if (item && !cJSON_IsNull(item))
				continue;
			struct decoded_field p = {0};
			name_place(&p, d->path, "", f->name);
			return error_set_field(
				e, ERROR_MISSING_FIELD, p.name, "\"%s\" is required", p.name);
		}
	return 0;
}

/* Names from the client are cut: they only serve to find the field again. */
static void name_place(struct decoded_field *p, const char *path, const char *dot, const char *name)
{
	snprintf(p->name, sizeof p->name, "%.64s%s%.80s", path, dot, name);
}

static int json_decode_string(const cJSON *item, const struct decoded_field *p, struct error *e)
{
	if (!cJSON_IsString(item))
		return json_decode_refuse(p, "a string", e);
	size_t len = strlen(item->valuestring);
	if (len == 0 && (p->field->flags & FIELD_NOT_EMPTY))
		return json_decode_refuse(p, "a string that is not empty", e);
	if (len > (size_t)max_length(p))
		return error_set_field(e, ERROR_INVALID_FIELD, p->name,
			"\"%s\" must not be longer than %lld bytes", p->name,
			(long long)max_length(p));
	if (p->field->check && p->field->check(item->valuestring, p->name, e) < 0)
		return -1;
	*(const char **)p->to = item->valuestring;
	return 0;
}

static int decode_enum(const cJSON *item, const struct decoded_field *p, struct error *e)
{
	int value = cJSON_IsString(item) ? field_enum_of(p->field, item->valuestring) : -1;
	autobuf wanted = {0};
	if (value >= 0) {
		*(unsigned *)p->to = (unsigned)value;
		return 0;
	}
	for (const char *const *name = p->field->names; *name; name++)
		buf_printf(&wanted, "%s\"%s\"",
			name == p->field->names ? ""
			: name[1]               ? ", "
						: " or ",
			*name);
	buf_append_char(&wanted, '\0');
	return json_decode_refuse(p, wanted.data, e);
}

static int json_decode_env(const cJSON *item, const struct decoded_field *p, struct error *e)
{
	const cJSON *map = NULL;
	struct decoded_field inner = *p;
	inner.to = &map;
	if (decode_string_map(item, &inner, e) < 0)
		return -1;
	return json_strings(map, p->name, p->memory, p->to, e);
}

static int decode_list(const cJSON *item, const struct decoded_field *p, struct error *e)
{
	size_t size = 0;
	struct strings list = {0};
	if (!cJSON_IsArray(item))
		return json_decode_refuse(p, "an array of strings", e);
	if (check_count(item, p, e) < 0)
		return -1;
	for (const cJSON *entry = item->child; entry; entry = entry->next) {
		if (!cJSON_IsString(entry) || !entry->valuestring[0])
			return json_decode_refuse(p, "an array of strings that are not empty", e);
		size += strlen(entry->valuestring) + 1;
	}
	list.data = scratch_alloc(p->memory, size + 1);
	for (const cJSON *entry = item->child; entry; entry = entry->next) {
		size_t len = strlen(entry->valuestring) + 1;
		memcpy(list.data + list.len, entry->valuestring, len);
		list.len += len;
	}
	*(struct strings *)p->to = list;
	return 0;
}

static int decode_headers(const cJSON *item, const struct decoded_field *p, struct error *e)
{
	if (!cJSON_IsArray(item))
		return json_decode_refuse(
			p, "an array of objects with \"host\" and \"headers\"", e);
	if (check_count(item, p, e) < 0)
		return -1;
	return json_headers_decode(item, p->name, p->memory, p->to, e);
}

static int decode_json(const cJSON *item, const struct decoded_field *p, struct error *e)
{
	if (!cJSON_IsObject(item))
		return json_decode_refuse(p, "an object", e);
	return json_text(item, p->name, (size_t)max_length(p), p->memory, p->to, e);
}

static int json_decode_bool(const cJSON *item, const struct decoded_field *p, struct error *e)
{
	if (!cJSON_IsBool(item))
		return json_decode_refuse(p, "true or false", e);
	*(bool *)p->to = cJSON_IsTrue(item);
	return 0;
}

static int json_decode_integer(const cJSON *item, const struct decoded_field *p, struct error *e)
{
	int64_t value;
	if (!whole_number(item, &value))
		return json_decode_refuse(p, "a whole number", e);
	if (p->field->scale && __builtin_mul_overflow(value, p->field->scale, &value))
		return json_decode_refuse_range(p, e);
	return put_number(value, p, e);
}

static int decode_duration(const cJSON *item, const struct decoded_field *p, struct error *e)
{
	int64_t ms;
	if (!cJSON_IsString(item) || units_parse_duration_ms(item->valuestring, &ms) < 0)
		return json_decode_refuse(p, "a duration such as \"30s\"", e);
	return put_number(ms, p, e);
}

static int decode_size(const cJSON *item, const struct decoded_field *p, struct error *e)
{
	int64_t bytes;
	bool valid = cJSON_IsString(item) ? units_parse_size(item->valuestring, &bytes) == 0
					  : whole_number(item, &bytes) && bytes >= 0;
	if (!valid)
		return json_decode_refuse(p, "a size such as \"256Mi\" or a number of bytes", e);
	return put_number(bytes, p, e);
}

static int decode_cpu(const cJSON *item, const struct decoded_field *p, struct error *e)
{
	int64_t millicores = 0;
	bool valid;
	if (cJSON_IsNumber(item)) {
		valid = item->valuedouble >= 0 && item->valuedouble * 1000 <= INTEGER_MAX;
		if (valid)
			millicores = (int64_t)(item->valuedouble * 1000 + 0.5);
	} else {
		valid = cJSON_IsString(item) &&
			units_parse_millicores(item->valuestring, &millicores) == 0;
	}
	if (!valid)
		return json_decode_refuse(p, "an amount of CPU such as \"500m\" or 0.5", e);
	return put_number(millicores, p, e);
}

static int decode_object(const cJSON *item, const struct decoded_field *p, struct error *e)
{
	if (!cJSON_IsObject(item))
		return json_decode_refuse(p, "an object", e);
	int r = check_count(item, p, e);
	return r < 0 ? r : put_item(item, p);
}

static int decode_array(const cJSON *item, const struct decoded_field *p, struct error *e)
{
	if (!cJSON_IsArray(item))
		return json_decode_refuse(p, "an array", e);
	int r = check_count(item, p, e);
	return r < 0 ? r : put_item(item, p);
}

static int decode_string_map(const cJSON *item, const struct decoded_field *p, struct error *e)
{
	if (!cJSON_IsObject(item))
		return json_decode_refuse(p, "an object of strings", e);
	int r = check_count(item, p, e);
	if (r < 0)
		return r;
	for (const cJSON *entry = item->child; entry; entry = entry->next) {
		const struct field any_string = {.name = entry->string};
		const char *value;
		struct decoded_field inner = {.field = &any_string, .to = &value};
		name_place(&inner, p->name, ".", entry->string);
		r = json_decode_string(entry, &inner, e);
		if (r < 0)
			return r;
	}
	return put_item(item, p);
}

static int decode_any(const cJSON *item, const struct decoded_field *p, struct error *e)
{
	(void)e;
	return put_item(item, p);
}

static int check_count(const cJSON *item, const struct decoded_field *p, struct error *e)
{
	int count = cJSON_GetArraySize(item);
	if (count == 0 && (p->field->flags & FIELD_NOT_EMPTY))
		return error_set_field(
			e, ERROR_INVALID_FIELD, p->name, "\"%s\" must not be empty", p->name);
	if (count > max_length(p))
		return error_set_field(e, ERROR_INVALID_FIELD, p->name,
			"\"%s\" must not have more than %lld entries", p->name,
			(long long)max_length(p));
	return 0;
}

static bool whole_number(const cJSON *item, int64_t *ret)
{
	double value = item->valuedouble;
	if (!cJSON_IsNumber(item) || value < -INTEGER_MAX || value > INTEGER_MAX)
		return false;
	*ret = (int64_t)value;
	return (double)*ret == value;
}

static int put_number(int64_t value, const struct decoded_field *p, struct error *e)
{
	const struct field *f = p->field;
	bool limited = f->min || f->max;
	if (limited && (value < f->min || value > f->max))
		return json_decode_refuse_range(p, e);
	*(int64_t *)p->to = value;
	return 0;
}

static int put_item(const cJSON *item, const struct decoded_field *p)
{
	*(const cJSON **)p->to = item;
	return 0;
}

static int json_decode_refuse(const struct decoded_field *p, const char *wanted, struct error *e)
{
	return error_set_field(
		e, ERROR_INVALID_FIELD, p->name, "\"%s\" must be %s", p->name, wanted);
}

static int json_decode_refuse_range(const struct decoded_field *p, struct error *e)
{
	char min[UNITS_TEXT_SIZE], max[UNITS_TEXT_SIZE];
	int64_t scale = p->field->scale ? p->field->scale : 1;
	enum field_kind kind = p->field->scale ? FIELD_INTEGER : p->field->kind;
	format_amount(kind, p->field->min / scale, min);
	format_amount(kind, p->field->max / scale, max);
	return error_set_field(e, ERROR_INVALID_FIELD, p->name, "\"%s\" must be between %s and %s",
		p->name, min, max);
}

/* As the client would write it. */
static void format_amount(enum field_kind kind, int64_t value, char out[UNITS_TEXT_SIZE])
{
	if (kind == FIELD_DURATION)
		units_format_duration_ms(value, out);
	else if (kind == FIELD_BYTES)
		units_format_size(value, out);
	else if (kind == FIELD_CPU)
		units_format_millicores(value, out);
	else
		snprintf(out, UNITS_TEXT_SIZE, "%lld", (long long)value);
}

static int64_t max_length(const struct decoded_field *p)
{
	return p->field->max ? p->field->max : LENGTH_DEFAULT;
}
