/* The life cycle of sandboxes: pause, resume, leases, events, usage. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/again.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/encode.h"
#include "client/failure.h"
#include "client/sandbox.h"
#include "json/json.h"

#define EVENT_PAGE 200

/* ---- pause, resume, lease ---- */

static int client_lifecycle_move(struct bunker *b, const char *id, const char *path, bool memory,
	struct bunker_sandbox *ret, struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	struct json_writer w = {.out = &body};
	cJSON *tree;
	client_append_sandbox_path(&target, id, path);
	json_begin_object(&w);
	json_put_bool(&w, "memory", memory);
	json_end_object(&w);
	int r = client_call_json(b, "POST", &target, &body, &tree, e);
	return r < 0 ? r : client_decode_sandbox(tree, ret, e);
}

int bunker_pause(struct bunker *b, const char *id, bool keep_memory, struct bunker_sandbox *ret,
	struct bunker_error *e)
{
	return client_lifecycle_move(b, id, "/pause", keep_memory, ret, e);
}

int bunker_resume(struct bunker *b, const char *id, bool keep_memory, struct bunker_sandbox *ret,
	struct bunker_error *e)
{
	return client_lifecycle_move(b, id, "/resume", keep_memory, ret, e);
}

int bunker_set_lease(struct bunker *b, const char *id, const char *duration,
	struct bunker_sandbox *ret, struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	struct json_writer w = {.out = &body};
	cJSON *tree;
	client_append_sandbox_path(&target, id, "");
	json_begin_object(&w);
	json_key(&w, "timeout");
	json_begin_object(&w);
	json_put_string(&w, "lease", duration);
	json_end_object(&w);
	json_end_object(&w);
	int r = client_call_json(b, "PATCH", &target, &body, &tree, e);
	return r < 0 ? r : client_decode_sandbox(tree, ret, e);
}

/* ---- events ---- */

static const struct answer_field event_fields[] = {
	{"number", ANSWER_INTEGER, offsetof(struct bunker_event, number)},
	{"type", ANSWER_STRING, offsetof(struct bunker_event, type)},
	{"cause", ANSWER_STRING, offsetof(struct bunker_event, cause)},
	{"createdAt", ANSWER_STRING, offsetof(struct bunker_event, created_at)},
};

struct event_reader {
	bunker_event_fn *each;
	void *arg;
	int64_t last;
	struct again again;
};

/* The event's strings live in the tree, which stays the caller's. */
static int give_event(struct event_reader *r, cJSON *tree, struct bunker_error *e)
{
	struct bunker_event event = {.json = client_answer_to_json(tree)};
	client_answer_decode(tree, event_fields, ARRAY_LEN(event_fields), &event);
	client_again_progress(&r->again);
	if (strcmp(event.type, "keepalive") == 0)
		return 0;
	const cJSON *details = cJSON_GetObjectItemCaseSensitive(tree, "details");
	if (client_answer_pairs(details, &event.details, &event.detail_count) < 0)
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	int stop = r->each(r->arg, &event);
	free(event.details);
	r->last = event.number;
	return stop ? client_fail(e, BUNKER_STOPPED, "stopped by the caller") : 0;
}

static int client_lifecycle_take_line(
	void *arg, const char *line, size_t len, struct bunker_error *e)
{
	struct error bad;
	autojson *tree = NULL;
	if (len == 0)
		return 0;
	if (json_parse(line, len, &tree, &bad) < 0)
		return client_fail(e, BUNKER_INVALID_RESPONSE, "a line of the server's is no JSON");
	return give_event(arg, tree, e);
}

static void client_lifecycle_append_number(struct buf *target, const char *name, int64_t number)
{
	buf_append_char(target, memchr(target->data, '?', target->len) ? '&' : '?');
	buf_printf(target, "%s=%lld", name, (long long)number);
}

static int lifecycle_follow(
	struct bunker *b, const char *id, struct event_reader *r, struct bunker_error *e)
{
	autobuf target = {0};
	struct lines lines = {.take = client_lifecycle_take_line, .arg = r};
	client_append_sandbox_path(&target, id, "/events");
	client_lifecycle_append_number(&target, "cursor", r->last);
	int result = client_call_lines(b, "GET", &target, NULL, &lines, e);
	client_lines_finish(&lines);
	return result;
}

/* 1 when there may be more. */
static int client_lifecycle_read_page(
	struct bunker *b, const char *id, struct event_reader *r, struct bunker_error *e)
{
	autobuf target = {0};
	autojson *page = NULL;
	client_append_sandbox_path(&target, id, "/events");
	client_lifecycle_append_number(&target, "limit", EVENT_PAGE);
	client_lifecycle_append_number(&target, "cursor", r->last);
	int result = client_call_json(b, "GET", &target, NULL, &page, e);
	if (result < 0)
		return result;
	const cJSON *events = cJSON_GetObjectItemCaseSensitive(page, "events");
	for (cJSON *item = events ? events->child : NULL; item; item = item->next)
		if (give_event(r, item, e) < 0)
			return -1;
	return cJSON_GetObjectItemCaseSensitive(page, "nextCursor") != NULL;
}

int bunker_events(struct bunker *b, const char *id, int64_t after, bool go_on,
	bunker_event_fn *each, void *arg, struct bunker_error *e)
{
	struct event_reader reader = {each, arg, after, {.bunker = b}};
	int r;
	do
		r = go_on ? lifecycle_follow(b, id, &reader, e)
			  : client_lifecycle_read_page(b, id, &reader, e);
	while (r > 0 || (r < 0 && client_again(&reader.again, e)));
	return r;
}

/* ---- usage ---- */

static const struct answer_field usage_fields[] = {
	{"cpuTimeMs", ANSWER_INTEGER, offsetof(struct bunker_usage, cpu_ms)},
	{"memoryByteSeconds", ANSWER_INTEGER, offsetof(struct bunker_usage, memory_byte_seconds)},
	{"memoryBytes", ANSWER_INTEGER, offsetof(struct bunker_usage, memory)},
	{"diskBytes", ANSWER_INTEGER, offsetof(struct bunker_usage, disk)},
	{"pids", ANSWER_INTEGER, offsetof(struct bunker_usage, pids)},
	{"networkBytesIn", ANSWER_INTEGER, offsetof(struct bunker_usage, network_in)},
	{"networkBytesOut", ANSWER_INTEGER, offsetof(struct bunker_usage, network_out)},
	{"endedAt", ANSWER_STRING, offsetof(struct bunker_usage, ended_at)},
};

int bunker_usage(struct bunker *b, const char *id, struct bunker_usage *ret, struct bunker_error *e)
{
	autobuf target = {0};
	cJSON *tree;
	client_append_sandbox_path(&target, id, "/usage");
	int r = client_call_json(b, "GET", &target, NULL, &tree, e);
	if (r < 0)
		return r;
	*ret = (struct bunker_usage){.json = client_answer_to_json(tree)};
	client_answer_decode(tree, usage_fields, ARRAY_LEN(usage_fields), ret);
	return 0;
}

void bunker_usage_finish(struct bunker_usage *usage)
{
	cJSON_Delete(client_answer_from_json(usage->json));
	*usage = (struct bunker_usage){0};
}
