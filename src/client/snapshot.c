/* Snapshots: made, listed, tagged, deleted; as files. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/list.h"
#include "client/sandbox.h"
#include "json/json.h"

#define FIELD(json_name, kind, member)                                                             \
	{                                                                                          \
		json_name, kind, offsetof(struct bunker_snapshot, member)                          \
	}

static const struct answer_field snapshot_fields[] = {
	FIELD("id", ANSWER_STRING, id),
	FIELD("name", ANSWER_STRING, name),
	FIELD("tag", ANSWER_STRING, tag),
	FIELD("description", ANSWER_STRING, description),
	FIELD("status", ANSWER_STRING, status),
	FIELD("parent", ANSWER_STRING, parent),
	FIELD("sandboxId", ANSWER_STRING, sandbox_id),
	FIELD("template", ANSWER_STRING, template_name),
	FIELD("createdAt", ANSWER_STRING, created_at),
	FIELD("sizeBytes", ANSWER_INTEGER, size),
	FIELD("fileCount", ANSWER_INTEGER, files),
	FIELD("frozenMs", ANSWER_NUMBER, frozen_ms),
};

static int client_snapshot_decode_item(cJSON *tree, void *item, struct bunker_error *e)
{
	struct bunker_snapshot *s = item;
	(void)e;
	*s = (struct bunker_snapshot){.size = -1, .files = -1, .json = client_answer_to_json(tree)};
	client_answer_decode(tree, snapshot_fields, ARRAY_LEN(snapshot_fields), s);
	return 0;
}

void bunker_snapshot_finish(struct bunker_snapshot *snapshot)
{
	bunker_json_free(snapshot->json);
	*snapshot = (struct bunker_snapshot){0};
}

static void client_snapshot_finish_item(void *item)
{
	bunker_snapshot_finish(item);
}

static const struct list_kind snapshot_list = {"snapshots", sizeof(struct bunker_snapshot),
	offsetof(struct bunker_snapshot, json), client_snapshot_decode_item,
	client_snapshot_finish_item};

int bunker_snapshot_list(struct bunker *b, const char *name, struct bunker_snapshot_list *ret,
	struct bunker_error *e)
{
	autobuf target = {0};
	void *items;
	buf_append_str(&target, "/v1/snapshots?limit=" LIST_PAGE);
	client_call_append_query(&target, "name", name);
	int r = client_list(b, &target, &snapshot_list, 0, &items, &ret->count, e);
	if (r == 0)
		ret->items = items;
	return r;
}

void bunker_snapshot_list_finish(struct bunker_snapshot_list *list)
{
	client_list_finish(&snapshot_list, list->items, list->count);
	*list = (struct bunker_snapshot_list){0};
}

char *bunker_snapshot_list_json(const struct bunker_snapshot_list *list)
{
	return client_list_json(&snapshot_list, list->items, list->count);
}

/* ---- one ---- */

static void client_snapshot_append_path(struct buf *target, const char *ref, const char *rest)
{
	buf_append_str(target, "/v1/snapshots/");
	client_call_append_escaped(target, ref);
	buf_append_str(target, rest);
}

static int client_snapshot_call(struct bunker *b, const char *method, struct buf *target,
	const struct buf *body, struct bunker_snapshot *ret, struct bunker_error *e)
{
	cJSON *tree;
	int r = client_call_json(b, method, target, body, &tree, e);
	return r < 0 ? r : client_snapshot_decode_item(tree, ret, e);
}

static void put_optional(struct json_writer *w, const char *key, const char *value)
{
	if (value)
		json_put_string(w, key, value);
}

int bunker_snapshot_create(struct bunker *b, const char *sandbox_id,
	const struct bunker_snapshot_options *options, struct bunker_snapshot *ret,
	struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	struct json_writer w = {.out = &body};
	client_append_sandbox_path(&target, sandbox_id, "/snapshots");
	json_begin_object(&w);
	put_optional(&w, "name", options->name);
	put_optional(&w, "tag", options->tag);
	put_optional(&w, "description", options->description);
	json_end_object(&w);
	return client_snapshot_call(b, "POST", &target, &body, ret, e);
}

int bunker_snapshot_get(
	struct bunker *b, const char *ref, struct bunker_snapshot *ret, struct bunker_error *e)
{
	autobuf target = {0};
	client_snapshot_append_path(&target, ref, "");
	return client_snapshot_call(b, "GET", &target, NULL, ret, e);
}

int bunker_snapshot_tag(struct bunker *b, const char *ref, const char *tag,
	struct bunker_snapshot *ret, struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	struct json_writer w = {.out = &body};
	client_snapshot_append_path(&target, ref, "");
	json_begin_object(&w);
	json_put_string(&w, "tag", tag);
	json_end_object(&w);
	return client_snapshot_call(b, "PATCH", &target, &body, ret, e);
}

int bunker_snapshot_delete(struct bunker *b, const char *ref, struct bunker_error *e)
{
	autobuf target = {0};
	client_snapshot_append_path(&target, ref, "");
	return client_call_nothing(b, "DELETE", &target, NULL, e);
}

/* ---- as a file ---- */

int bunker_snapshot_export(
	struct bunker *b, const char *ref, bunker_data_fn *data, void *arg, struct bunker_error *e)
{
	autobuf target = {0};
	client_snapshot_append_path(&target, ref, "/export");
	return client_call_bytes(b, &target, "application/zstd", data, arg, e);
}

int bunker_snapshot_import(struct bunker *b, const struct bunker_snapshot_options *options,
	bunker_read_fn *read, void *arg, struct bunker_snapshot *ret, struct bunker_error *e)
{
	autobuf target = {0};
	cJSON *tree;
	buf_append_str(&target, "/v1/snapshots/import");
	client_call_append_query(&target, "name", options->name);
	client_call_append_query(&target, "tag", options->tag);
	client_call_append_query(&target, "description", options->description);
	int r = client_call_upload(b, "POST", &target, "application/zstd", read, arg, &tree, e);
	return r < 0 ? r : client_snapshot_decode_item(tree, ret, e);
}
