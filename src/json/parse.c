/*
 * From text to a tree. cJSON builds the tree, but it is lenient: it takes control characters for
 * blanks and lets them stand in strings, reads "\u00zz" as NUL, takes "01" and "1." for numbers,
 * skips a byte order mark and ignores what follows the value. So the scanner reads the text first
 * and settles the grammar, the depth and the number of values before anything is allocated or
 * recursion begins. What is left for afterwards: duplicate keys and numbers that overflow a double.
 */
#include "json/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "json/scan.h"

static int check_text(const char *text, size_t len, struct error *e);
static int check_tree(const cJSON *item, struct error *e);
static int check_keys(const cJSON *object, struct error *e);
static int compare_keys(const void *a, const void *b);

int json_parse(const char *text, size_t len, cJSON **ret, struct error *e)
{
	int r = check_text(text, len, e);
	if (r < 0)
		return r;
	cJSON *root = cJSON_ParseWithLength(text, len);
	if (!root)
		return error_set(e, ERROR_RESOURCE_EXHAUSTED, "out of memory");
	r = check_tree(root, e);
	if (r < 0)
		cJSON_Delete(root);
	else
		*ret = root;
	return r;
}

/* ---- before cJSON sees it ---- */

static int text_refuse(const struct json_scan *s, struct error *e)
{
	if (s->at == s->len && s->depth == 0)
		return error_set(e, ERROR_INVALID_JSON, "JSON was expected, but nothing came");
	if (s->fault == json_scan_too_deep)
		return error_set(e, ERROR_INVALID_JSON, "the nesting is deeper than %d levels",
			JSON_MAX_DEPTH);
	return error_set(
		e, ERROR_INVALID_JSON, "this is not JSON: %s at byte %zu", s->fault, s->at);
}

static int check_text(const char *text, size_t len, struct error *e)
{
	struct json_scan s = {.text = text, .len = len, .last = true, .max_depth = JSON_MAX_DEPTH};
	unsigned keys = 0, values = 0;
	for (int token; (token = json_scan(&s)) != JSON_DONE;) {
		if (token < 0)
			return text_refuse(&s, e);
		keys += token == JSON_KEY;
		values += token == JSON_TEXT_END || token == JSON_LITERAL ||
			  token == JSON_BEGIN_OBJECT || token == JSON_BEGIN_ARRAY;
		if (values > JSON_MAX_VALUES + 1) /* the outermost is not counted */
			return error_set(e, ERROR_INVALID_JSON, "there are more than %d values",
				JSON_MAX_VALUES);
		if (keys > JSON_MAX_KEYS)
			return error_set(e, ERROR_INVALID_JSON, "there are more than %d keys",
				JSON_MAX_KEYS);
	}
	return 0;
}

/* ---- after cJSON ---- */

static int check_tree(const cJSON *item, struct error *e)
{
	if (cJSON_IsNumber(item) && !isfinite(item->valuedouble))
		return error_set(e, ERROR_INVALID_JSON, "a number is too large");
	if (cJSON_IsObject(item)) {
		int r = check_keys(item, e);
		if (r < 0)
			return r;
	}
	for (const cJSON *child = item->child; child; child = child->next) {
		int r = check_tree(child, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_keys(const cJSON *object, struct error *e)
{
	const char *few[16];
	autofree const char **many = NULL;
	const char **keys = few;
	size_t count = 0;
	for (const cJSON *child = object->child; child; child = child->next)
		count++;
	if (count > ARRAY_LEN(few)) {
		keys = many = malloc(count * sizeof *many);
		if (!many)
			return error_set(e, ERROR_RESOURCE_EXHAUSTED, "out of memory");
	}
	size_t n = 0;
	for (const cJSON *child = object->child; child; child = child->next)
		keys[n++] = child->string;
	qsort(keys, count, sizeof *keys, compare_keys);
	for (size_t i = 1; i < count; i++)
		if (strcmp(keys[i - 1], keys[i]) == 0)
			return error_set_field(e, ERROR_INVALID_JSON, keys[i],
				"the key \"%s\" is there twice", keys[i]);
	return 0;
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}
