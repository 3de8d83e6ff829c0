/*
 * GET /v2/sandboxes, in pages, and GET /sandboxes, all at once.
 *
 * The filter on metadata comes encoded three times: once by the query, once as the pairs of a query
 * of its own, once key by key and value by value.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dialect/e2b/decode.h"
#include "dialect/e2b/encode.h"

#define PAGE_MAX  100
#define PAIRS_MAX 64

struct pair {
	char *key, *value;
};

struct query {
	bool wants_running, wants_paused;
	bool ascending;
	int64_t started_after_ms;
	const char *template_name;
	struct pair pairs[PAIRS_MAX];
	size_t pair_count;
	int64_t limit;
	int64_t place_ms; /* of the last one on the page before */
	char place_id[ID_SIZE];
};

/* ---- the query ---- */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place; what is no escape stays as it is, except that a NUL cannot be meant. */
static void unescape(char *text)
{
	char *to = text;
	for (const char *from = text; *from; from++) {
		int high = from[0] == '%' ? hex_value(from[1]) : -1;
		int low = high >= 0 ? hex_value(from[2]) : -1;
		if (low >= 0 && (high | low)) {
			*to++ = (char)(high << 4 | low);
			from += 2;
		} else {
			*to++ = *from == '+' ? ' ' : *from;
		}
	}
	*to = '\0';
}

static int parse_metadata(
	const char *text, struct scratch *memory, struct query *q, struct error *e)
{
	if (!text || !text[0])
		return 0;
	size_t size = strlen(text) + 1;
	char *copy = memcpy(scratch_alloc(memory, size), text, size);
	unescape(copy);
	for (char *pair = copy, *next; pair; pair = next) {
		next = strchr(pair, '&');
		if (next)
			*next++ = '\0';
		char *value = strchr(pair, '=');
		if (!value || q->pair_count == PAIRS_MAX)
			return error_set_field(e, ERROR_INVALID_FIELD, "metadata",
				"\"metadata\" must be up to %d pairs such as 'user=abc&app=prod'",
				PAIRS_MAX);
		*value++ = '\0';
		unescape(pair);
		unescape(value);
		q->pairs[q->pair_count++] = (struct pair){pair, value};
	}
	return 0;
}

static int parse_states(const char *text, struct query *q, struct error *e)
{
	q->wants_running = q->wants_paused = !text || !text[0];
	for (const char *p = text; p && *p; p += *p == ',') {
		size_t len = strcspn(p, ",");
		if (len == 7 && strncmp(p, "running", len) == 0)
			q->wants_running = true;
		else if (len == 6 && strncmp(p, "paused", len) == 0)
			q->wants_paused = true;
		else
			return error_set_field(e, ERROR_INVALID_FIELD, "state",
				"\"state\" must be 'running', 'paused' or both");
		p += len;
	}
	return 0;
}

static int parse_order(const char *text, struct query *q, struct error *e)
{
	q->ascending = text && strcmp(text, "asc") == 0;
	if (text && text[0] && !q->ascending && strcmp(text, "desc") != 0)
		return error_set_field(
			e, ERROR_INVALID_FIELD, "order", "\"order\" must be 'asc' or 'desc'");
	return 0;
}

static int parse_started_after(const char *text, struct query *q, struct error *e)
{
	q->started_after_ms = INT64_MIN;
	if (!text || !text[0] || clock_parse_rfc3339(text, &q->started_after_ms) == 0)
		return 0;
	return error_set_field(e, ERROR_INVALID_FIELD, "startedAfter",
		"\"startedAfter\" must be a time such as 2026-01-01T00:00:00Z");
}

static int parse_token(const char *text, struct query *q, struct error *e)
{
	q->place_ms = q->ascending ? INT64_MIN : INT64_MAX;
	if (!text || !text[0] || cursor_parse(text, &q->place_ms, q->place_id))
		return 0;
	return error_set_field(e, ERROR_INVALID_FIELD, "nextToken",
		"\"nextToken\" must be what an earlier answer had in X-Next-Token");
}

static int parse_query(
	const struct http_request *req, struct scratch *memory, struct query *q, struct error *e)
{
	const char *template_name = http_query(req, "template");
	q->template_name = template_name && template_name[0] ? template_name : NULL;
	if (parse_metadata(http_query(req, "metadata"), memory, q, e) < 0 ||
		parse_states(http_query(req, "state"), q, e) < 0 ||
		parse_order(http_query(req, "order"), q, e) < 0 ||
		parse_started_after(http_query(req, "startedAfter"), q, e) < 0 ||
		parse_token(http_query(req, "nextToken"), q, e) < 0)
		return -1;
	return query_optional_number(req, "limit", 1, PAGE_MAX, &q->limit, e);
}

/* ---- what matches ---- */

static bool metadata_matches(const struct query *q, const char *json)
{
	if (q->pair_count == 0)
		return true;
	cJSON *metadata = cJSON_Parse(json);
	bool matches = true;
	for (size_t i = 0; matches && i < q->pair_count; i++) {
		const cJSON *item = cJSON_GetObjectItemCaseSensitive(metadata, q->pairs[i].key);
		matches = cJSON_IsString(item) && strcmp(item->valuestring, q->pairs[i].value) == 0;
	}
	cJSON_Delete(metadata);
	return matches;
}

static bool matches_query(const struct query *q, const struct sandbox_view *view)
{
	enum e2b_state state = e2b_state_of(view);
	if (state == E2B_GONE || !(state == E2B_PAUSED ? q->wants_paused : q->wants_running))
		return false;
	return view->created_ms > q->started_after_ms &&
	       (!q->template_name || strcmp(q->template_name, view->template_name) == 0) &&
	       metadata_matches(q, view->metadata);
}

static void add_next_token(struct http_request *req, const struct sandbox_view *last)
{
	char token[CURSOR_SIZE];
	cursor_format(last->created_ms, last->id, token);
	http_add_header(req, "X-Next-Token", token);
}

/* Of the tenant's, whatever the page shows. */
static void add_total_running(struct http_request *req)
{
	struct sandbox_view view;
	char text[24];
	size_t count = 0;
	struct sandbox *s = sandbox_first(server_of(req)->box, tenant_of(req), 0, "");
	for (; s; s = sandbox_next(s)) {
		sandbox_view(s, &view);
		count += e2b_state_of(&view) == E2B_RUNNING;
	}
	snprintf(text, sizeof text, "%zu", count);
	http_add_header(req, "X-Total-Running", text);
}

static struct sandbox *first_of(const struct http_request *req, const struct query *q)
{
	struct box *b = server_of(req)->box;
	return q->ascending ? sandbox_first(b, tenant_of(req), q->place_ms, q->place_id)
			    : sandbox_last(b, tenant_of(req), q->place_ms, q->place_id);
}

static void list(struct http_request *req, int64_t limit)
{
	struct error e;
	autoscratch memory = {0};
	struct query q = {.limit = limit};
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct sandbox_view view, last = {0};
	if (parse_query(req, &memory, &q, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	json_begin_array(&w);
	struct sandbox *s = first_of(req, &q);
	for (; s; s = q.ascending ? sandbox_next(s) : sandbox_previous(s)) {
		sandbox_view(s, &view);
		if (!matches_query(&q, &view))
			continue;
		if (q.limit-- == 0)
			break;
		e2b_put_listed(&w, server_of(req), &view);
		last = view;
	}
	json_end_array(&w);
	if (s)
		add_next_token(req, &last);
	add_total_running(req);
	e2b_respond_json(req, 200, &body);
}

static void handle_list_v2(struct http_request *req)
{
	list(req, PAGE_MAX);
}

static void handle_list_v1(struct http_request *req)
{
	list(req, INT64_MAX);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/v2/sandboxes", handle_list_v2, 0},
	{HTTP_GET, "/sandboxes", handle_list_v1, 0},
};

const struct route_table e2b_list_table = ROUTE_TABLE(routes);
