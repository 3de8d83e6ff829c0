/*
 * From text to a tree. cJSON builds the tree, but it is lenient: it takes control characters for
 * blanks and lets them stand in strings, reads "\u00zz" as NUL, takes "01" and "1." for numbers,
 * skips a byte order mark and ignores what follows the value. So a scan over the raw text comes
 * first and settles all that a look at single tokens can settle, together with depth and number of
 * values, before anything is allocated or recursion begins. What is left for afterwards: duplicate
 * keys and numbers that overflow a double.
 */
#include "json/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

struct scan {
	const char *text;
	size_t len;
	size_t at;
	unsigned depth;
	unsigned keys;
	unsigned values;
};

static int scan_text(struct scan *s, struct error *e);
static int scan_token(struct scan *s, struct error *e);
static int scan_mark(struct scan *s, struct error *e);
static int scan_string(struct scan *s, struct error *e);
static int scan_escape(struct scan *s, struct error *e);
static int scan_number(struct scan *s, struct error *e);
static size_t scan_digits(struct scan *s);
static void scan_blanks(struct scan *s);
static char peek(const struct scan *s);
static int refuse(const struct scan *s, const char *what, struct error *e);
static int check_tree(const cJSON *item, struct error *e);
static int check_keys(const cJSON *object, struct error *e);
static int compare_keys(const void *a, const void *b);

int json_parse(const char *text, size_t len, cJSON **ret, struct error *e)
{
	struct scan s = {.text = text, .len = len};
	int r = scan_text(&s, e);
	if (r < 0)
		return r;
	const char *end = text;
	cJSON *root = cJSON_ParseWithLengthOpts(text, len, &end, false);
	s.at = (size_t)(end - text);
	scan_blanks(&s);
	if (!root || s.at < len) {
		cJSON_Delete(root);
		return refuse(&s, "unexpected text", e);
	}
	r = check_tree(root, e);
	if (r < 0) {
		cJSON_Delete(root);
		return r;
	}
	*ret = root;
	return 0;
}

/* ---- before cJSON sees it ---- */

static int scan_text(struct scan *s, struct error *e)
{
	scan_blanks(s);
	if (s->at == s->len)
		return error_set(e, ERROR_INVALID_JSON, "JSON was expected, but nothing came");
	for (; s->at < s->len; scan_blanks(s)) {
		int r = scan_token(s, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int scan_token(struct scan *s, struct error *e)
{
	char c = peek(s);
	if (c == '"')
		return scan_string(s, e);
	if (c == '-' || (c >= '0' && c <= '9'))
		return scan_number(s, e);
	if (c && strchr("{}[]:,", c))
		return scan_mark(s, e);
	/* The letters of true, false and null; cJSON knows their order. */
	if (!c || !strchr("truefalsn", c))
		return refuse(s, "unexpected text", e);
	s->at++;
	return 0;
}

static int scan_mark(struct scan *s, struct error *e)
{
	char c = peek(s);
	s->values += c == ',' || c == '{' || c == '[';
	s->keys += c == ':';
	if (s->values > JSON_MAX_VALUES)
		return error_set(
			e, ERROR_INVALID_JSON, "there are more than %d values", JSON_MAX_VALUES);
	if (s->keys > JSON_MAX_KEYS)
		return error_set(
			e, ERROR_INVALID_JSON, "there are more than %d keys", JSON_MAX_KEYS);
	if ((c == '{' || c == '[') && ++s->depth > JSON_MAX_DEPTH)
		return error_set(e, ERROR_INVALID_JSON, "the nesting is deeper than %d levels",
			JSON_MAX_DEPTH);
	if ((c == '}' || c == ']') && s->depth-- == 0)
		return refuse(s, "unexpected text", e);
	s->at++;
	return 0;
}

static int scan_string(struct scan *s, struct error *e)
{
	s->at++;
	while (s->at < s->len && s->text[s->at] != '"') {
		unsigned char c = (unsigned char)s->text[s->at];
		if (c < 0x20)
			return refuse(s, "a control character in a string", e);
		if (c == '\\') {
			int r = scan_escape(s, e);
			if (r < 0)
				return r;
			continue;
		}
		size_t n = utf8_char_len(s->text + s->at, s->len - s->at);
		if (n == 0)
			return refuse(s, "text that is not UTF-8", e);
		s->at += n;
	}
	if (s->at == s->len)
		return refuse(s, "a string without end", e);
	s->at++;
	return 0;
}

static int scan_escape(struct scan *s, struct error *e)
{
	s->at++;
	char c = peek(s);
	if (!c || !strchr("\"\\/bfnrtu", c))
		return refuse(s, "an invalid escape", e);
	s->at++;
	if (c != 'u')
		return 0;
	static const char hex[] = "0123456789abcdefABCDEF";
	bool zero = true;
	for (int i = 0; i < 4; i++, s->at++) {
		c = peek(s);
		if (!c || !strchr(hex, c))
			return refuse(s, "an invalid escape", e);
		zero = zero && c == '0';
	}
	return zero ? refuse(s, "NUL in a string", e) : 0;
}

static int scan_number(struct scan *s, struct error *e)
{
	s->at += peek(s) == '-';
	bool leading_zero = peek(s) == '0';
	size_t digits = scan_digits(s);
	bool valid = digits == 1 || (digits > 1 && !leading_zero);
	if (valid && peek(s) == '.') {
		s->at++;
		valid = scan_digits(s) > 0;
	}
	if (valid && (peek(s) == 'e' || peek(s) == 'E')) {
		s->at++;
		s->at += peek(s) == '+' || peek(s) == '-';
		valid = scan_digits(s) > 0;
	}
	return valid ? 0 : refuse(s, "a malformed number", e);
}

static size_t scan_digits(struct scan *s)
{
	size_t from = s->at;
	while (peek(s) >= '0' && peek(s) <= '9')
		s->at++;
	return s->at - from;
}

static void scan_blanks(struct scan *s)
{
	while (peek(s) == ' ' || peek(s) == '\t' || peek(s) == '\n' || peek(s) == '\r')
		s->at++;
}

/* NUL at the end; a NUL within the text is refused wherever it stands. */
static char peek(const struct scan *s)
{
	return s->at < s->len ? s->text[s->at] : '\0';
}

static int refuse(const struct scan *s, const char *what, struct error *e)
{
	return error_set(e, ERROR_INVALID_JSON, "this is not JSON: %s at byte %zu", what, s->at);
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
