#include "answer/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 18 /* fit in 64 bits */

/* Returns how many digits the text begins with; 0 if there are none, or too many for a number. */
static size_t query_count_digits(const char *text)
{
	size_t count = strspn(text, "0123456789");
	return count <= DIGITS_MAX ? count : 0;
}

static int query_parse_number(
	const char *text, const char *name, int64_t min, int64_t max, int64_t *ret, struct error *e)
{
	size_t digits = query_count_digits(text);
	int64_t value = digits > 0 && !text[digits] ? strtoll(text, NULL, 10) : -1;
	if (value < 0 || value < min || value > max)
		return error_set_field(e, ERROR_INVALID_FIELD, name,
			"\"%s\" must be a number from %lld to %lld", name, (long long)min,
			(long long)max);
	*ret = value;
	return 0;
}

int query_number(const struct http_request *req, const char *name, int64_t min, int64_t max,
	int64_t *ret, struct error *e)
{
	const char *text = http_query(req, name);
	return text ? query_parse_number(text, name, min, max, ret, e) : 0;
}

int query_optional_number(const struct http_request *req, const char *name, int64_t min,
	int64_t max, int64_t *ret, struct error *e)
{
	const char *text = http_query(req, name);
	return text && text[0] ? query_parse_number(text, name, min, max, ret, e) : 0;
}

int query_bool(const struct http_request *req, const char *name, bool *ret, struct error *e)
{
	const char *text = http_query(req, name);
	if (!text)
		return 0;
	if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return error_set_field(
			e, ERROR_INVALID_FIELD, name, "\"%s\" must be 'true' or 'false'", name);
	*ret = text[0] == 't';
	return 0;
}

/* ---- cursors ---- */

bool cursor_parse(const char *text, int64_t *ms, char id[ID_SIZE])
{
	size_t digits = query_count_digits(text);
	if (digits == 0 || text[digits] != '-' || !id_is_valid(text + digits + 1))
		return false;
	*ms = strtoll(text, NULL, 10);
	memcpy(id, text + digits + 1, ID_SIZE);
	return true;
}

void cursor_format(int64_t ms, const char *id, char out[CURSOR_SIZE])
{
	snprintf(out, CURSOR_SIZE, "%lld-%.*s", (long long)ms, ID_LEN, id);
}
