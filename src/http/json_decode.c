/*
 * Fills a struct from an object by a table of fields. Each kind is one small function that knows
 * what it accepts and how to say what it wanted; the field's full name, with the path in front, is
 * in every message.
 */
#include "http/json.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"

#define LENGTH_DEFAULT 65536
/* Beyond, a double does not hold every integer, so that the client may have meant another one. */
#define INTEGER_MAX 9007199254740992.0 /* 2^53 */

/* The field being decoded, with its name as the client knows it. */
struct place {
	const struct json_field *field;
	char name[160];
	void *to;
};

static const struct json_field *find_field(
	const struct json_field *fields, size_t count, const char *name);
static int check_required(
	const cJSON *object, const struct json_field *field, const char *path, struct error *e);
static void name_place(struct place *p, const char *path, const char *dot, const char *name);
static int decode_string(const cJSON *item, const struct place *p, struct error *e);
static int decode_bool(const cJSON *item, const struct place *p, struct error *e);
static int decode_integer(const cJSON *item, const struct place *p, struct error *e);
static int decode_duration(const cJSON *item, const struct place *p, struct error *e);
static int decode_size(const cJSON *item, const struct place *p, struct error *e);
static int decode_cpu(const cJSON *item, const struct place *p, struct error *e);
static int decode_object(const cJSON *item, const struct place *p, struct error *e);
static int decode_array(const cJSON *item, const struct place *p, struct error *e);
static int decode_string_map(const cJSON *item, const struct place *p, struct error *e);
static int decode_any(const cJSON *item, const struct place *p, struct error *e);
static int check_count(const cJSON *item, const struct place *p, struct error *e);
static bool whole_number(const cJSON *item, int64_t *ret);
static int put_number(int64_t value, const struct place *p, struct error *e);
static int put_item(const cJSON *item, const struct place *p);
static int refuse(const struct place *p, const char *wanted, struct error *e);
static int refuse_range(const struct place *p, struct error *e);
static void format_amount(enum json_kind kind, int64_t value, char out[UNITS_TEXT_SIZE]);
static int64_t max_length(const struct place *p);

static int (*const decoders[])(const cJSON *item, const struct place *p, struct error *e) = {
	[JSON_STRING] = decode_string,
	[JSON_BOOL] = decode_bool,
	[JSON_INTEGER] = decode_integer,
	[JSON_DURATION] = decode_duration,
	[JSON_SIZE] = decode_size,
	[JSON_CPU] = decode_cpu,
	[JSON_OBJECT] = decode_object,
	[JSON_ARRAY] = decode_array,
	[JSON_STRING_MAP] = decode_string_map,
	[JSON_ANY] = decode_any,
};

int json_decode(const cJSON *object, const struct json_field *fields, size_t count,
	const char *path, void *destination, struct error *e)
{
	for (const cJSON *item = cJSON_IsObject(object) ? object->child : NULL; item;
		item = item->next) {
		struct place p = {0};
		name_place(&p, path, "", item->string);
		if (!find_field(fields, count, item->string))
			return error_set_field(e, ERROR_UNKNOWN_FIELD, p.name,
				"\"%s\" is not a known field", p.name);
	}
	return json_decode_known(object, fields, count, path, destination, e);
}

int json_decode_known(const cJSON *object, const struct json_field *fields, size_t count,
	const char *path, void *destination, struct error *e)
{
	if (!cJSON_IsObject(object))
		return error_set(e, ERROR_INVALID_JSON, "a JSON object was expected");
	for (const cJSON *item = object->child; item; item = item->next) {
		struct place p = {.field = find_field(fields, count, item->string)};
		if (!p.field)
			continue;
		name_place(&p, path, "", item->string);
		p.to = (char *)destination + p.field->offset;
		int r = cJSON_IsNull(item) ? 0 : decoders[p.field->kind](item, &p, e);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < count; i++) {
		int r = check_required(object, &fields[i], path, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static const struct json_field *find_field(
	const struct json_field *fields, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	return NULL;
}

static int check_required(
	const cJSON *object, const struct json_field *field, const char *path, struct error *e)
{
	if (!(field->flags & JSON_REQUIRED))
		return 0;
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, field->name);
	if (item && !cJSON_IsNull(item))
		return 0;
	struct place p = {.field = field};
	name_place(&p, path, "", field->name);
	return error_set_field(e, ERROR_MISSING_FIELD, p.name, "\"%s\" is required", p.name);
}

/* Names from the client are cut: they only serve to find the field again. */
static void name_place(struct place *p, const char *path, const char *dot, const char *name)
{
	snprintf(p->name, sizeof p->name, "%.64s%s%.80s", path, dot, name);
}

static int decode_string(const cJSON *item, const struct place *p, struct error *e)
{
	if (!cJSON_IsString(item))
		return refuse(p, "a string", e);
	size_t len = strlen(item->valuestring);
	if (len == 0 && (p->field->flags & JSON_NOT_EMPTY))
		return refuse(p, "a string that is not empty", e);
	if (len > (size_t)max_length(p))
		return error_set_field(e, ERROR_INVALID_FIELD, p->name,
			"\"%s\" must not be longer than %lld bytes", p->name,
			(long long)max_length(p));
	*(const char **)p->to = item->valuestring;
	return 0;
}

static int decode_bool(const cJSON *item, const struct place *p, struct error *e)
{
	if (!cJSON_IsBool(item))
		return refuse(p, "true or false", e);
	*(bool *)p->to = cJSON_IsTrue(item);
	return 0;
}

static int decode_integer(const cJSON *item, const struct place *p, struct error *e)
{
	int64_t value;
	if (!whole_number(item, &value))
		return refuse(p, "a whole number", e);
	return put_number(value, p, e);
}

static int decode_duration(const cJSON *item, const struct place *p, struct error *e)
{
	int64_t ms;
	if (!cJSON_IsString(item) || units_parse_duration_ms(item->valuestring, &ms) < 0)
		return refuse(p, "a duration such as \"30s\"", e);
	return put_number(ms, p, e);
}

static int decode_size(const cJSON *item, const struct place *p, struct error *e)
{
	int64_t bytes;
	bool valid = cJSON_IsString(item) ? units_parse_size(item->valuestring, &bytes) == 0
					  : whole_number(item, &bytes) && bytes >= 0;
	if (!valid)
		return refuse(p, "a size such as \"256Mi\" or a number of bytes", e);
	return put_number(bytes, p, e);
}

static int decode_cpu(const cJSON *item, const struct place *p, struct error *e)
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
		return refuse(p, "an amount of CPU such as \"500m\" or 0.5", e);
	return put_number(millicores, p, e);
}

static int decode_object(const cJSON *item, const struct place *p, struct error *e)
{
	if (!cJSON_IsObject(item))
		return refuse(p, "an object", e);
	int r = check_count(item, p, e);
	return r < 0 ? r : put_item(item, p);
}

static int decode_array(const cJSON *item, const struct place *p, struct error *e)
{
	if (!cJSON_IsArray(item))
		return refuse(p, "an array", e);
	int r = check_count(item, p, e);
	return r < 0 ? r : put_item(item, p);
}

static int decode_string_map(const cJSON *item, const struct place *p, struct error *e)
{
	if (!cJSON_IsObject(item))
		return refuse(p, "an object of strings", e);
	int r = check_count(item, p, e);
	if (r < 0)
		return r;
	for (const cJSON *entry = item->child; entry; entry = entry->next) {
		const struct json_field any_string = {.name = entry->string};
		const char *value;
		struct place inner = {.field = &any_string, .to = &value};
		name_place(&inner, p->name, ".", entry->string);
		r = decode_string(entry, &inner, e);
		if (r < 0)
			return r;
	}
	return put_item(item, p);
}

static int decode_any(const cJSON *item, const struct place *p, struct error *e)
{
	(void)e;
	return put_item(item, p);
}

static int check_count(const cJSON *item, const struct place *p, struct error *e)
{
	int count = cJSON_GetArraySize(item);
	if (count == 0 && (p->field->flags & JSON_NOT_EMPTY))
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

static int put_number(int64_t value, const struct place *p, struct error *e)
{
	const struct json_field *f = p->field;
	bool limited = f->min || f->max;
	if (limited && (value < f->min || value > f->max))
		return refuse_range(p, e);
	*(int64_t *)p->to = value;
	return 0;
}

static int put_item(const cJSON *item, const struct place *p)
{
	*(const cJSON **)p->to = item;
	return 0;
}

static int refuse(const struct place *p, const char *wanted, struct error *e)
{
	return error_set_field(
		e, ERROR_INVALID_FIELD, p->name, "\"%s\" must be %s", p->name, wanted);
}

static int refuse_range(const struct place *p, struct error *e)
{
	char min[UNITS_TEXT_SIZE], max[UNITS_TEXT_SIZE];
	format_amount(p->field->kind, p->field->min, min);
	format_amount(p->field->kind, p->field->max, max);
	return error_set_field(e, ERROR_INVALID_FIELD, p->name, "\"%s\" must be between %s and %s",
		p->name, min, max);
}

/* As the client would write it. */
static void format_amount(enum json_kind kind, int64_t value, char out[UNITS_TEXT_SIZE])
{
	if (kind == JSON_DURATION)
		units_format_duration_ms(value, out);
	else if (kind == JSON_SIZE)
		units_format_size(value, out);
	else if (kind == JSON_CPU)
		units_format_millicores(value, out);
	else
		snprintf(out, UNITS_TEXT_SIZE, "%lld", (long long)value);
}

static int64_t max_length(const struct place *p)
{
	return p->field->max ? p->field->max : LENGTH_DEFAULT;
}
