#include "api/lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define WAIT_MAX_MS   (10 * 60 * 1000)
#define LIMIT_DEFAULT 50
#define LIMIT_MAX     500

/* ---- waiting ---- */

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

void api_put_next(struct answer *a, struct json_writer *w, const struct op_event *event)
{
	const struct answer_list *list = a->own;
	char cursor[CURSOR_SIZE];
	if (!event->more)
		return;
	cursor_format(list->last_ms, list->last_id, cursor);
	json_put_string(w, "nextCursor", cursor);
}
