/* Checkpoints of a sandbox, back to them or to its beginning, and copies of it. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/failure.h"
#include "client/list.h"
#include "client/sandbox.h"
#include "json/json.h"

#define FIELD(json_name, kind, member)                                                             \
	{                                                                                          \
		json_name, kind, offsetof(struct bunker_checkpoint, member)                        \
	}

static const struct answer_field checkpoint_fields[] = {
	FIELD("id", ANSWER_STRING, id),
	FIELD("name", ANSWER_STRING, name),
	FIELD("parent", ANSWER_STRING, parent),
	FIELD("status", ANSWER_STRING, status),
	FIELD("createdAt", ANSWER_STRING, created_at),
	FIELD("frozenMs", ANSWER_NUMBER, frozen_ms),
};

static int client_checkpoint_decode_item(cJSON *tree, void *item, struct bunker_error *e)
{
	struct bunker_checkpoint *c = item;
	(void)e;
	*c = (struct bunker_checkpoint){.json = client_answer_to_json(tree)};
	client_answer_decode(tree, checkpoint_fields, ARRAY_LEN(checkpoint_fields), c);
	return 0;
}

void bunker_checkpoint_finish(struct bunker_checkpoint *checkpoint)
{
	bunker_json_free(checkpoint->json);
	*checkpoint = (struct bunker_checkpoint){0};
}

static void client_checkpoint_finish_item(void *item)
{
	bunker_checkpoint_finish(item);
}

static const struct list_kind checkpoint_list = {"checkpoints", sizeof(struct bunker_checkpoint),
	offsetof(struct bunker_checkpoint, json), client_checkpoint_decode_item,
	client_checkpoint_finish_item};

static void client_checkpoint_append_path(
	struct buf *target, const char *sandbox_id, const char *checkpoint, const char *rest)
{
	client_append_sandbox_path(target, sandbox_id, "/checkpoints/");
	client_call_append_escaped(target, checkpoint);
	buf_append_str(target, rest);
}

int bunker_checkpoint_create(struct bunker *b, const char *sandbox_id, const char *name,
	struct bunker_checkpoint *ret, struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	struct json_writer w = {.out = &body};
	cJSON *tree;
	client_append_sandbox_path(&target, sandbox_id, "/checkpoints");
	json_begin_object(&w);
	json_put_string(&w, "name", name);
	json_end_object(&w);
	int r = client_call_json(b, "POST", &target, &body, &tree, e);
	return r < 0 ? r : client_checkpoint_decode_item(tree, ret, e);
}

int bunker_checkpoint_list(struct bunker *b, const char *sandbox_id,
	struct bunker_checkpoint_list *ret, struct bunker_error *e)
{
	autobuf target = {0};
	void *items;
	client_append_sandbox_path(&target, sandbox_id, "/checkpoints");
	int r = client_list(b, &target, &checkpoint_list, 0, &items, &ret->count, e);
	if (r == 0)
		ret->items = items;
	return r;
}

void bunker_checkpoint_list_finish(struct bunker_checkpoint_list *list)
{
	client_list_finish(&checkpoint_list, list->items, list->count);
	*list = (struct bunker_checkpoint_list){0};
}

char *bunker_checkpoint_list_json(const struct bunker_checkpoint_list *list)
{
	return client_list_json(&checkpoint_list, list->items, list->count);
}

static int call_for_sandbox(
	struct bunker *b, struct buf *target, struct bunker_sandbox *ret, struct bunker_error *e)
{
	cJSON *tree;
	int r = client_call_json(b, "POST", target, NULL, &tree, e);
	return r < 0 ? r : client_decode_sandbox(tree, ret, e);
}

int bunker_checkpoint_restore(struct bunker *b, const char *sandbox_id, const char *checkpoint,
	struct bunker_sandbox *ret, struct bunker_error *e)
{
	autobuf target = {0};
	client_checkpoint_append_path(&target, sandbox_id, checkpoint, "/restore");
	return call_for_sandbox(b, &target, ret, e);
}

int bunker_discard(
	struct bunker *b, const char *id, struct bunker_sandbox *ret, struct bunker_error *e)
{
	autobuf target = {0};
	client_append_sandbox_path(&target, id, "/discard");
	return call_for_sandbox(b, &target, ret, e);
}

int bunker_checkpoint_delete(
	struct bunker *b, const char *sandbox_id, const char *checkpoint, struct bunker_error *e)
{
	autobuf target = {0};
	client_checkpoint_append_path(&target, sandbox_id, checkpoint, "");
	return client_call_nothing(b, "DELETE", &target, NULL, e);
}

int bunker_fork(struct bunker *b, const char *id, int64_t count, struct bunker_sandbox_list *ret,
	struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	struct json_writer w = {.out = &body};
	autojson *tree = NULL;
	void *items;
	client_append_sandbox_path(&target, id, "/fork");
	json_begin_object(&w);
	json_put_int(&w, "count", count);
	json_end_object(&w);
	int r = client_call_json(b, "POST", &target, &body, &tree, e);
	if (r == 0)
		r = client_list_take(tree, &client_sandbox_list, &items, &ret->count, e);
	if (r == 0)
		ret->items = items;
	return r;
}
