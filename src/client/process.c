/* Processes in the background: start, get, list, signal, kill; and jobs, which are the same. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/again.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/encode.h"
#include "client/failure.h"
#include "client/list.h"
#include "client/result.h"
#include "client/sandbox.h"

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

static const char **client_process_decode_argv(const cJSON *array)
{
	size_t n = 0;
	const char **argv = calloc((size_t)cJSON_GetArraySize(array) + 1, sizeof *argv);
	for (const cJSON *item = argv && array ? array->child : NULL; item; item = item->next)
		if (cJSON_IsString(item))
			argv[n++] = item->valuestring;
	return argv;
}

/* Takes the tree, also when it fails. */
static int client_process_decode_process(
	cJSON *tree, struct bunker_process *ret, struct bunker_error *e)
{
	struct bunker_process p = {.json = client_answer_to_json(tree)};
	client_answer_decode(tree, process_fields, ARRAY_LEN(process_fields), &p);
	const cJSON *exit_code = cJSON_GetObjectItemCaseSensitive(tree, "exitCode");
	p.exit_code = cJSON_IsNumber(exit_code) ? exit_code->valueint : -1;
	p.signal = client_decode_signal(cJSON_GetObjectItemCaseSensitive(tree, "signal"));
	p.argv = client_process_decode_argv(cJSON_GetObjectItemCaseSensitive(tree, "command"));
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

static void client_process_append_path(struct buf *target, const char *sandbox_id, const char *kind,
	const char *process, const char *rest)
{
	client_append_sandbox_path(target, sandbox_id, kind);
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
	client_process_append_path(
		&target, sandbox_id, options->job ? "/jobs" : "/processes", NULL, "");
	client_encode_process(&(struct json_writer){.out = &body}, options);
	int r = client_call_json(b, "POST", &target, &body, &tree, e);
	return r < 0 ? r : client_process_decode_process(tree, ret, e);
}

int bunker_process_get(struct bunker *b, const char *sandbox_id, const char *process,
	const char *wait, struct bunker_process *ret, struct bunker_error *e)
{
	struct again again = {.bunker = b};
	cJSON *tree;
	int r;
	do {
		autobuf target = {0};
		client_process_append_path(
			&target, sandbox_id, "/processes", process, wait ? "?wait=" : "");
		if (wait)
			client_call_append_escaped(&target, wait);
		r = client_call_json(b, "GET", &target, NULL, &tree, e);
	} while (r < 0 && client_again(&again, e));
	return r < 0 ? r : client_process_decode_process(tree, ret, e);
}

int bunker_process_signal(struct bunker *b, const char *sandbox_id, const char *process,
	const char *signal, bool tree, struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	autojson *answer = NULL;
	struct json_writer w = {.out = &body};
	client_process_append_path(&target, sandbox_id, "/processes", process, "/signal");
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
	client_process_append_path(&target, sandbox_id, "/processes", process, "");
	return client_call_json(b, "DELETE", &target, NULL, &answer, e);
}

int bunker_job_stop(struct bunker *b, const char *sandbox_id, const char *job, const char *grace,
	bool force, struct bunker_process *ret, struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	cJSON *tree;
	struct json_writer w = {.out = &body};
	client_process_append_path(&target, sandbox_id, "/jobs", job, "/stop");
	json_begin_object(&w);
	if (grace)
		json_put_string(&w, "grace", grace);
	json_put_bool(&w, "force", force);
	json_end_object(&w);
	int r = client_call_json(b, "POST", &target, &body, &tree, e);
	return r < 0 ? r : client_process_decode_process(tree, ret, e);
}

/* ---- many ---- */

static int client_process_decode_item(cJSON *tree, void *item, struct bunker_error *e)
{
	return client_process_decode_process(tree, item, e);
}

static void client_process_finish_item(void *item)
{
	bunker_process_finish(item);
}

#define KIND(key)                                                                                  \
	{                                                                                          \
		key, sizeof(struct bunker_process), offsetof(struct bunker_process, json),         \
			client_process_decode_item, client_process_finish_item                     \
	}

static const struct list_kind process_list = KIND("processes"), job_list = KIND("jobs");

static const struct {
	const char *path;
	const struct list_kind *kind;
} filters[] = {
	[BUNKER_RUNNING] = {"/processes?limit=" LIST_PAGE, &process_list},
	[BUNKER_ENDED] = {"/processes?status=ended&limit=" LIST_PAGE, &process_list},
	[BUNKER_JOBS] = {"/jobs?limit=" LIST_PAGE, &job_list},
};

int bunker_process_list(struct bunker *b, const char *sandbox_id, enum bunker_process_filter filter,
	size_t limit, struct bunker_process_list *ret, struct bunker_error *e)
{
	autobuf target = {0};
	void *items;
	client_append_sandbox_path(&target, sandbox_id, filters[filter].path);
	int r = client_list(b, &target, filters[filter].kind, limit, &items, &ret->count, e);
	if (r == 0)
		ret->items = items;
	return r;
}

void bunker_process_list_finish(struct bunker_process_list *list)
{
	client_list_finish(&process_list, list->items, list->count);
	*list = (struct bunker_process_list){0};
}

char *bunker_process_list_json(const struct bunker_process_list *list)
{
	return client_list_json(&process_list, list->items, list->count);
}
