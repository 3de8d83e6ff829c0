/* Processes in the background: start, get, list, signal, kill; and jobs, which are the same. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/encode.h"
#include "client/failure.h"
#include "client/result.h"

#define FIELD(json_name, kind, member)                                                             \
	{                                                                                          \
		json_name, kind, offsetof(struct bunker_process, member)                           \
	}

static const struct answer_field process_fields[] = {
	FIELD("id", ANSWER_STRING, id),
	FIELD("sandboxId", ANSWER_STRING, sandbox_id),
	FIELD("kind", ANSWER_STRING, kind),
	FIELD("name", ANSWER_STRING, name),
	FIELD("status", ANSWER_STRING, status),
	FIELD("user", ANSWER_STRING, user),
	FIELD("cwd", ANSWER_STRING, cwd),
	FIELD("startedAt", ANSWER_STRING, started_at),
	FIELD("endedAt", ANSWER_STRING, ended_at),
	FIELD("state", ANSWER_STRING, state),
	FIELD("pty", ANSWER_BOOL, terminal),
	FIELD("timedOut", ANSWER_BOOL, timed_out),
	FIELD("oomKilled", ANSWER_BOOL, oom_killed),
	FIELD("outputTruncated", ANSWER_BOOL, output_truncated),
	FIELD("pid", ANSWER_INTEGER, pid),
	FIELD("memory", ANSWER_INTEGER, memory),
	FIELD("peakMemory", ANSWER_INTEGER, peak_memory),
	FIELD("cpuMs", ANSWER_NUMBER, cpu_ms),
	FIELD("durationMs", ANSWER_NUMBER, duration_ms),
};

static const char **decode_argv(const cJSON *array)
{
	size_t n = 0;
	const char **argv = calloc((size_t)cJSON_GetArraySize(array) + 1, sizeof *argv);
	for (const cJSON *item = argv && array ? array->child : NULL; item; item = item->next)
		if (cJSON_IsString(item))
			argv[n++] = item->valuestring;
	return argv;
}

/* Takes the tree, also when it fails. */
static int decode_process(cJSON *tree, struct bunker_process *ret, struct bunker_error *e)
{
	struct bunker_process p = {.json = client_answer_to_json(tree)};
	client_answer_decode(tree, process_fields, ARRAY_LEN(process_fields), &p);
	const cJSON *exit_code = cJSON_GetObjectItemCaseSensitive(tree, "exitCode");
	p.exit_code = cJSON_IsNumber(exit_code) ? exit_code->valueint : -1;
	p.signal = client_decode_signal(cJSON_GetObjectItemCaseSensitive(tree, "signal"));
	p.argv = decode_argv(cJSON_GetObjectItemCaseSensitive(tree, "command"));
	if (*p.id && p.argv) {
		*ret = p;
		return 0;
	}
	client_fail(e, *p.id ? BUNKER_OUT_OF_MEMORY : BUNKER_INVALID_RESPONSE,
		*p.id ? "out of memory" : "the server's process has no id");
	bunker_process_finish(&p);
	return -1;
}

void bunker_process_finish(struct bunker_process *process)
{
	free(process->argv);
	cJSON_Delete(client_answer_from_json(process->json));
	*process = (struct bunker_process){0};
}

/* ---- one ---- */

static void append_path(struct buf *target, const char *sandbox_id, const char *kind,
	const char *process, const char *rest)
{
	buf_append_str(target, "/v1/sandboxes/");
	client_call_append_escaped(target, sandbox_id);
	buf_append_str(target, kind);
	if (process) {
		buf_append_char(target, '/');
		client_call_append_escaped(target, process);
	}
	buf_append_str(target, rest);
}

int bunker_process_start(struct bunker *b, const char *sandbox_id,
	const struct bunker_process_options *options, struct bunker_process *ret,
	struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	cJSON *tree;
	if (!options->command.shell && (!options->command.argv || !options->command.argv[0]))
		return client_fail(e, BUNKER_INVALID_ARGUMENT, "there is no command to run");
	append_path(&target, sandbox_id, options->job ? "/jobs" : "/processes", NULL, "");
	client_encode_process(&(struct json_writer){.out = &body}, options);
	int r = client_call_json(b, "POST", &target, &body, &tree, e);
	return r < 0 ? r : decode_process(tree, ret, e);
}

int bunker_process_get(struct bunker *b, const char *sandbox_id, const char *process,
	const char *wait, struct bunker_process *ret, struct bunker_error *e)
{
	autobuf target = {0};
	cJSON *tree;
	append_path(&target, sandbox_id, "/processes", process, wait ? "?wait=" : "");
	if (wait)
		client_call_append_escaped(&target, wait);
	int r = client_call_json(b, "GET", &target, NULL, &tree, e);
	return r < 0 ? r : decode_process(tree, ret, e);
}

int bunker_process_signal(struct bunker *b, const char *sandbox_id, const char *process,
	const char *signal, bool tree, struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	autojson *answer = NULL;
	struct json_writer w = {.out = &body};
	append_path(&target, sandbox_id, "/processes", process, "/signal");
	json_begin_object(&w);
	json_put_string(&w, "signal", signal);
	json_put_bool(&w, "tree", tree);
	json_end_object(&w);
	return client_call_json(b, "POST", &target, &body, &answer, e);
}

int bunker_process_kill(
	struct bunker *b, const char *sandbox_id, const char *process, struct bunker_error *e)
{
	autobuf target = {0};
	autojson *answer = NULL;
	append_path(&target, sandbox_id, "/processes", process, "");
	return client_call_json(b, "DELETE", &target, NULL, &answer, e);
}

int bunker_job_stop(struct bunker *b, const char *sandbox_id, const char *job, const char *grace,
	bool force, struct bunker_process *ret, struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	cJSON *tree;
	struct json_writer w = {.out = &body};
	append_path(&target, sandbox_id, "/jobs", job, "/stop");
	json_begin_object(&w);
	if (grace)
		json_put_string(&w, "grace", grace);
	json_put_bool(&w, "force", force);
	json_end_object(&w);
	int r = client_call_json(b, "POST", &target, &body, &tree, e);
	return r < 0 ? r : decode_process(tree, ret, e);
}

/* ---- many ---- */

static const struct {
	const char *kind, *query, *key;
} filters[] = {
	[BUNKER_RUNNING] = {"/processes", "?limit=50", "processes"},
	[BUNKER_ENDED] = {"/processes", "?status=ended&limit=50", "processes"},
	[BUNKER_JOBS] = {"/jobs", "?limit=50", "jobs"},
};

static int append_process(struct bunker_process_list *list, cJSON *tree, struct bunker_error *e)
{
	struct bunker_process *items = reallocarray(list->items, list->count + 1, sizeof *items);
	if (!items) {
		cJSON_Delete(tree);
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	}
	list->items = items;
	int r = decode_process(tree, &items[list->count], e);
	if (r == 0)
		list->count++;
	return r;
}

/* *cursor is where the page starts (NULL: the first one), and then where the next one does. */
static int list_page(struct bunker *b, const char *sandbox_id, enum bunker_process_filter filter,
	size_t limit, char **cursor, struct bunker_process_list *list, struct bunker_error *e)
{
	autobuf target = {0};
	autojson *page = NULL;
	append_path(&target, sandbox_id, filters[filter].kind, NULL, filters[filter].query);
	if (*cursor) {
		buf_append_str(&target, "&cursor=");
		client_call_append_escaped(&target, *cursor);
	}
	int r = client_call_json(b, "GET", &target, NULL, &page, e);
	if (r < 0)
		return r;
	cJSON *array = cJSON_GetObjectItemCaseSensitive(page, filters[filter].key);
	while (r == 0 && array && array->child && (limit == 0 || list->count < limit))
		r = append_process(list, cJSON_DetachItemViaPointer(array, array->child), e);
	const cJSON *next = cJSON_GetObjectItemCaseSensitive(page, "nextCursor");
	free(*cursor);
	*cursor = cJSON_IsString(next) && *next->valuestring ? strdup(next->valuestring) : NULL;
	return r;
}

int bunker_process_list(struct bunker *b, const char *sandbox_id, enum bunker_process_filter filter,
	size_t limit, struct bunker_process_list *ret, struct bunker_error *e)
{
	struct bunker_process_list list = {0};
	autofree char *cursor = NULL;
	int r;
	do
		r = list_page(b, sandbox_id, filter, limit, &cursor, &list, e);
	while (r == 0 && cursor && (limit == 0 || list.count < limit));
	if (r < 0)
		bunker_process_list_finish(&list);
	else
		*ret = list;
	return r;
}

void bunker_process_list_finish(struct bunker_process_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		bunker_process_finish(&list->items[i]);
	free(list->items);
	*list = (struct bunker_process_list){0};
}

char *bunker_process_list_json(const struct bunker_process_list *list)
{
	autobuf text = {0};
	struct json_writer w = {.out = &text};
	json_begin_object(&w);
	json_key(&w, "processes");
	json_begin_array(&w);
	for (size_t i = 0; i < list->count; i++) {
		autofree char *item = bunker_json_text(list->items[i].json);
		if (!item)
			return NULL;
		json_raw(&w, item);
	}
	json_end_array(&w);
	json_end_object(&w);
	return buf_take_str(&text);
}
