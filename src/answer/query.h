/* Values in a query string, as all dialects have them. An absent one leaves *ret alone. */
#pragma once

#include "base/id.h"
#include "http/http.h"

int query_number(const struct http_request *req, const char *name, int64_t min, int64_t max,
	int64_t *ret, struct error *e);
/* As query_number, for clients that send absent values as empty ones. */
int query_optional_number(const struct http_request *req, const char *name, int64_t min,
	int64_t max, int64_t *ret, struct error *e);
/* "true" or "false" */
int query_bool(const struct http_request *req, const char *name, bool *ret, struct error *e);

/* A cursor is the end of a page: the time of the last listed row, '-', its id. */
#define CURSOR_SIZE (21 + ID_SIZE)

/* False, and nothing is stored: no answer has given this. */
bool cursor_parse(const char *text, int64_t *ms, char id[ID_SIZE]);
void cursor_format(int64_t ms, const char *id, char out[CURSOR_SIZE]);
