/* The life of sandboxes: create, get, list, destroy. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/encode.h"
#include "client/failure.h"
#include "client/list.h"
#include "client/sandbox.h"

#define FIELD(json_name, kind, member)                                                             \
	{                                                                                          \
		json_name, kind, offsetof(struct bunker_sandbox, member)                           \
	}

static const struct answer_field sandbox_fields[] = {
	FIELD("id", ANSWER_STRING, id),
	FIELD("name", ANSWER_STRING, name),
	FIELD("description", ANSWER_STRING, description),
	FIELD("status", ANSWER_STRING, status),
	FIELD("statusReason", ANSWER_STRING, status_reason),
	FIELD("template", ANSWER_STRING, template_name),
	FIELD("snapshot", ANSWER_STRING, snapshot),
	FIELD("parent", ANSWER_STRING, parent),
	FIELD("user", ANSWER_STRING, user),
	FIELD("workdir", ANSWER_STRING, workdir),
	FIELD("project", ANSWER_STRING, project),
	FIELD("isolation", ANSWER_STRING, isolation),
	FIELD("createdAt", ANSWER_STRING, created_at),
	FIELD("lastActiveAt", ANSWER_STRING, last_active_at),
	FIELD("expiresAt", ANSWER_STRING, expires_at),
	FIELD("terminatesAt", ANSWER_STRING, terminates_at),
	FIELD("leaseEndsAt", ANSWER_STRING, lease_ends_at),
	FIELD("pausedAt", ANSWER_STRING, paused_at),
	FIELD("endedAt", ANSWER_STRING, ended_at),
	FIELD("endedBy", ANSWER_STRING, ended_by),
	FIELD("bootId", ANSWER_STRING, boot_id),
	FIELD("onIdle", ANSWER_STRING, on_idle),
	FIELD("onLease", ANSWER_STRING, on_lease),
	FIELD("autoResume", ANSWER_BOOL, auto_resume),
	FIELD("startupMs", ANSWER_NUMBER, startup_ms),
	FIELD("executions", ANSWER_INTEGER, executions),
};

static const struct answer_field resource_fields[] = {
	FIELD("memory", ANSWER_STRING, memory),
	FIELD("cpu", ANSWER_STRING, cpu),
	FIELD("pids", ANSWER_INTEGER, pids),
	FIELD("openFiles", ANSWER_INTEGER, open_files),
	FIELD("disk", ANSWER_STRING, disk),
};

static const struct answer_field timeout_fields[] = {
	FIELD("idle", ANSWER_STRING, idle_timeout),
	FIELD("execution", ANSWER_STRING, execution_timeout),
	FIELD("paused", ANSWER_STRING, paused_timeout),
	FIELD("lease", ANSWER_STRING, lease),
};

int client_decode_sandbox(cJSON *tree, struct bunker_sandbox *ret, struct bunker_error *e)
{
	struct bunker_sandbox s = {.json = client_answer_to_json(tree)};
	client_answer_decode(tree, sandbox_fields, ARRAY_LEN(sandbox_fields), &s);
	client_answer_decode(cJSON_GetObjectItemCaseSensitive(tree, "resources"), resource_fields,
		ARRAY_LEN(resource_fields), &s);
	client_answer_decode(cJSON_GetObjectItemCaseSensitive(tree, "timeout"), timeout_fields,
		ARRAY_LEN(timeout_fields), &s);
	const cJSON *env = cJSON_GetObjectItemCaseSensitive(tree, "env");
	const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(tree, "metadata");
	int r = 0;
	if (!*s.id)
		r = client_fail(e, BUNKER_INVALID_RESPONSE, "the server's sandbox has no id");
	else if (client_answer_pairs(env, &s.env, &s.env_count) < 0 ||
		 client_answer_pairs(metadata, &s.metadata, &s.metadata_count) < 0)
		r = client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	if (r < 0)
		bunker_sandbox_finish(&s);
	else
		*ret = s;
	return r;
}

void bunker_sandbox_finish(struct bunker_sandbox *sandbox)
{
	free(sandbox->env);
	free(sandbox->metadata);
	cJSON_Delete(client_answer_from_json(sandbox->json));
	*sandbox = (struct bunker_sandbox){0};
}

void client_append_sandbox_path(struct buf *target, const char *id, const char *rest)
{
	buf_append_str(target, "/v1/sandboxes/");
	client_call_append_escaped(target, id);
	buf_append_str(target, rest);
}

int bunker_create(struct bunker *b, const struct bunker_create_options *options,
	struct bunker_sandbox *ret, struct bunker_error *e)
{
	static const struct bunker_create_options defaults = {0};
	autobuf target = {0}, body = {0};
	cJSON *tree;
	buf_append_str(&target, "/v1/sandboxes");
	client_encode_create(&(struct json_writer){.out = &body}, options ? options : &defaults);
	int r = client_call_json(b, "POST", &target, &body, &tree, e);
	return r < 0 ? r : client_decode_sandbox(tree, ret, e);
}

int bunker_get(struct bunker *b, const char *id, struct bunker_sandbox *ret, struct bunker_error *e)
{
	autobuf target = {0};
	cJSON *tree;
	client_append_sandbox_path(&target, id, "");
	int r = client_call_json(b, "GET", &target, NULL, &tree, e);
	return r < 0 ? r : client_decode_sandbox(tree, ret, e);
}

int bunker_destroy(struct bunker *b, const char *id, struct bunker_error *e)
{
	autobuf target = {0};
	autojson *tree = NULL;
	client_append_sandbox_path(&target, id, "");
	return client_call_json(b, "DELETE", &target, NULL, &tree, e);
}

static int client_sandbox_decode_item(cJSON *tree, void *item, struct bunker_error *e)
{
	return client_decode_sandbox(tree, item, e);
}

static void client_sandbox_finish_item(void *item)
{
	bunker_sandbox_finish(item);
}

const struct list_kind client_sandbox_list = {"sandboxes", sizeof(struct bunker_sandbox),
	offsetof(struct bunker_sandbox, json), client_sandbox_decode_item,
	client_sandbox_finish_item};

int bunker_list(struct bunker *b, const struct bunker_list_options *o,
	struct bunker_sandbox_list *ret, struct bunker_error *e)
{
	static const struct bunker_list_options everything = {0};
	autobuf target = {0};
	void *items;
	o = o ? o : &everything;
	buf_append_str(&target, "/v1/sandboxes?limit=" LIST_PAGE);
	client_call_append_query(&target, "status", o->status);
	client_call_append_query(&target, "project", o->project);
	client_call_append_query(&target, "name", o->name);
	for (size_t i = 0; i < o->metadata_count; i++) {
		autobuf name = {0};
		buf_append_str(&name, "metadata.");
		client_call_append_escaped(&name, o->metadata[i].name);
		buf_append_char(&name, '\0');
		client_call_append_query(&target, name.data, o->metadata[i].value);
	}
	int r = client_list(b, &target, &client_sandbox_list, o->limit, &items, &ret->count, e);
	if (r == 0)
		ret->items = items;
	return r;
}

void bunker_sandbox_list_finish(struct bunker_sandbox_list *list)
{
	client_list_finish(&client_sandbox_list, list->items, list->count);
	*list = (struct bunker_sandbox_list){0};
}

char *bunker_sandbox_list_json(const struct bunker_sandbox_list *list)
{
	return client_list_json(&client_sandbox_list, list->items, list->count);
}
