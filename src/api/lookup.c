#include "api/lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define WAIT_MAX_MS   (10 * 60 * 1000)
#define LIMIT_DEFAULT 50
#define LIMIT_MAX     500

static void respond_not_found(struct http_request *req)
{
	struct error e;
	error_set(&e, ERROR_NOT_FOUND, "there is no such %s",
		http_param(req, "process") ? "process"
		: http_param(req, "job")   ? "job"
					   : "execution");
	http_respond_error(req, &e);
}

/* By its pid or its name, which only those have that run. */
static struct execution *find_in_sandbox(const struct sandbox *s, const char *text)
{
	size_t len = strlen(text);
	if (len < 10 && len > 0 && strspn(text, "0123456789") == len)
		return execution_find_pid(s, (int32_t)strtol(text, NULL, 10));
	return execution_find_name(s, text);
}

static bool is_of_kind(const struct execution *x, unsigned kinds)
{
	struct execution_view view;
	execution_view(x, &view);
	return kinds == 0 || (kinds >> view.kind) & 1;
}

void api_find_execution(struct http_request *req, handler_execution_fn *found)
{
	const char *job = http_param(req, "job"), *process = http_param(req, "process");
	const char *of_sandbox = process ? process : job;
	const char *id = http_param(req, "id");
	const struct wanted_execution query = {
		.box = server_of(req)->box,
		.tenant = tenant_of(req),
		.sandbox_id = of_sandbox ? id : NULL,
		.id = of_sandbox ? of_sandbox : id,
		.kinds = job ? 1u << EXECUTION_JOB : 0,
	};
	struct sandbox *s = of_sandbox ? sandbox_find(query.box, query.tenant, id) : NULL;
	struct execution *x = s && !execution_find(query.box, query.tenant, of_sandbox)
				      ? find_in_sandbox(s, of_sandbox)
				      : NULL;
	if (x && is_of_kind(x, query.kinds))
		found(req, x);
	else
		handler_find_execution(req, &query, found, respond_not_found);
}

/* ---- waiting ---- */

void api_wait_for_end(
	struct http_request *req, struct execution *x, int64_t ms, handler_execution_fn *then)
{
	handler_await_end(req, server_of(req)->loop, x, ms, then);
}

int api_parse_wait(const struct http_request *req, int64_t *ms, struct error *e)
{
	const char *text = http_query(req, "wait");
	*ms = 0;
	if (text && (units_parse_duration_ms(text, ms) < 0 || *ms > WAIT_MAX_MS))
		return error_set_field(e, ERROR_INVALID_FIELD, "wait",
			"\"wait\" must be a duration of at most 10m, such as \"30s\"");
	return 0;
}

/* ---- pages ---- */

int api_parse_page(const struct http_request *req, struct api_page *ret, struct error *e)
{
	const char *text = http_query(req, "cursor");
	*ret = (struct api_page){.limit = LIMIT_DEFAULT};
	if (query_number(req, "limit", 1, LIMIT_MAX, &ret->limit, e) < 0)
		return -1;
	if (text && (!cursor_parse(text, &ret->before_ms, ret->before_id) || ret->before_ms == 0))
		return error_set_field(e, ERROR_INVALID_FIELD, "cursor",
			"\"cursor\" must be what an earlier answer gave as nextCursor");
	return 0;
}

void api_put_cursor(struct json_writer *w, int64_t ms, const char *id)
{
	char cursor[CURSOR_SIZE];
	cursor_format(ms, id, cursor);
	json_put_string(w, "nextCursor", cursor);
}
