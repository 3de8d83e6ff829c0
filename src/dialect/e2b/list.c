/*
 * GET /v2/sandboxes, in pages, and GET /sandboxes, all at once.
 *
 * The filter on metadata comes encoded three times: once by the query, once as the pairs of a query
 * of its own, once key by key and value by value.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "dialect/e2b/decode.h"
#include "dialect/e2b/aliases.h"
#include "op/life.h"

#define PAGE_MAX  100
#define PAIRS_MAX 64

#define STATUSES_RUNNING (1u << SANDBOX_CREATING | 1u << SANDBOX_IDLE | 1u << SANDBOX_RUNNING)
#define STATUSES_PAUSED                                                                            \
	(1u << SANDBOX_PAUSED | 1u << SANDBOX_STOPPING | 1u << SANDBOX_SUSPENDED |                 \
		1u << SANDBOX_FAILED)

/* ---- the query ---- */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place; what is no escape stays as it is, except that a NUL cannot be meant. */
static void e2b_list_unescape(char *text)
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

static int e2b_list_parse_metadata(
	const char *text, struct scratch *memory, struct op_list_sandboxes *q, struct error *e)
{
	if (!text || !text[0])
		return 0;
	size_t size = strlen(text) + 1;
	struct op_pair *pairs = scratch_alloc(memory, PAIRS_MAX * sizeof *pairs);
	char *copy = memcpy(scratch_alloc(memory, size), text, size);
	e2b_list_unescape(copy);
	for (char *pair = copy, *next; pair; pair = next) {
		next = strchr(pair, '&');
		if (next)
			*next++ = '\0';
		char *value = strchr(pair, '=');
		if (!value || q->metadata_count == PAIRS_MAX)
			return error_set_field(e, ERROR_INVALID_FIELD, "metadata",
				"\"metadata\" must be up to %d pairs such as 'user=abc&app=prod'",
				PAIRS_MAX);
		*value++ = '\0';
		e2b_list_unescape(pair);
		e2b_list_unescape(value);
		pairs[q->metadata_count++] = (struct op_pair){pair, value};
	}
	q->metadata = pairs;
	return 0;
}

static int parse_states(const char *text, struct op_list_sandboxes *q, struct error *e)
{
	if (!text || !text[0])
		q->statuses = STATUSES_RUNNING | STATUSES_PAUSED;
	for (const char *p = text; p && *p; p += *p == ',') {
		size_t len = strcspn(p, ",");
		if (len == 7 && strncmp(p, "running", len) == 0)
			q->statuses |= STATUSES_RUNNING;
		else if (len == 6 && strncmp(p, "paused", len) == 0)
			q->statuses |= STATUSES_PAUSED;
		else
			return error_set_field(e, ERROR_INVALID_FIELD, "state",
				"\"state\" must be 'running', 'paused' or both");
		p += len;
	}
	return 0;
}

static int parse_order(const char *text, struct op_list_sandboxes *q, struct error *e)
{
	q->backwards = !text || strcmp(text, "asc") != 0;
	if (text && text[0] && q->backwards && strcmp(text, "desc") != 0)
		return error_set_field(
			e, ERROR_INVALID_FIELD, "order", "\"order\" must be 'asc' or 'desc'");
	return 0;
}

static int parse_started_after(const char *text, struct op_list_sandboxes *q, struct error *e)
{
	if (!text || !text[0] || clock_parse_rfc3339(text, &q->made_from_ms) == 0)
		return 0;
	return error_set_field(e, ERROR_INVALID_FIELD, "startedAfter",
		"\"startedAfter\" must be a time such as 2026-01-01T00:00:00Z");
}

static int parse_token(const char *text, struct op_list_sandboxes *q, struct error *e)
{
	if (!text || !text[0] || cursor_parse(text, &q->place_ms, q->place_id))
		return 0;
	return error_set_field(e, ERROR_INVALID_FIELD, "nextToken",
		"\"nextToken\" must be what an earlier answer had in X-Next-Token");
}

static int e2b_list_parse_query(const struct http_request *req, struct scratch *memory,
	struct op_list_sandboxes *q, struct error *e)
{
	q->template_name = http_query(req, "template");
	if (e2b_list_parse_metadata(http_query(req, "metadata"), memory, q, e) < 0 ||
		parse_states(http_query(req, "state"), q, e) < 0 ||
		parse_order(http_query(req, "order"), q, e) < 0 ||
		parse_started_after(http_query(req, "startedAfter"), q, e) < 0 ||
		parse_token(http_query(req, "nextToken"), q, e) < 0)
		return -1;
	return query_optional_number(req, "limit", 1, PAGE_MAX, &q->limit, e);
}

/* ---- the answer ---- */

static void sandbox_list_put_headers(struct answer *a, const struct op_event *event)
{
	char awake[24], token[CURSOR_SIZE];
	if (event->more) {
		cursor_format(event->end_ms, event->end_id, token);
		http_add_header(a->req, "X-Next-Token", token);
	}
	snprintf(awake, sizeof awake, "%lld", (long long)event->awake);
	http_add_header(a->req, "X-Total-Running", awake);
}

/* limit 0: all at once. */
static void list_sandboxes(struct http_request *req, int64_t limit)
{
	static const struct answer_records records = {
		.aliases = &e2b_sandbox_listed, .begin = sandbox_list_put_headers};
	static const struct answer_form form = {E2B_PACED_LIST(&records)};
	struct error e;
	struct op_list_sandboxes query = {.ephemeral = -1,
		.living_only = true,
		.announces = true,
		.made_from_ms = INT64_MIN,
		.limit = limit};
	struct answer *a = answer_new(req, &form);
	if (e2b_list_parse_query(req, &a->call.memory, &query, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_list_sandboxes(&a->call, &query);
	answer_run(a);
}

static void handle_list_v2(struct http_request *req)
{
	list_sandboxes(req, PAGE_MAX);
}

static void handle_list_v1(struct http_request *req)
{
	list_sandboxes(req, 0);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/v2/sandboxes", handle_list_v2, 0},
	{HTTP_GET, "/sandboxes", handle_list_v1, 0},
};

const struct route_table e2b_list_table = ROUTE_TABLE(routes);
