/* Volumes: made, listed, deleted. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/list.h"
#include "json/json.h"

#define FIELD(json_name, kind, member)                                                             \
	{                                                                                          \
		json_name, kind, offsetof(struct bunker_volume, member)                            \
	}

static const struct answer_field volume_fields[] = {
	FIELD("id", ANSWER_STRING, id),
	FIELD("name", ANSWER_STRING, name),
	FIELD("status", ANSWER_STRING, status),
	FIELD("size", ANSWER_STRING, size),
	FIELD("createdAt", ANSWER_STRING, created_at),
	FIELD("sandboxes", ANSWER_INTEGER, sandboxes),
};

static int client_volume_decode_item(cJSON *tree, void *item, struct bunker_error *e)
{
	struct bunker_volume *v = item;
	(void)e;
	*v = (struct bunker_volume){.json = client_answer_to_json(tree)};
	client_answer_decode(tree, volume_fields, ARRAY_LEN(volume_fields), v);
	return 0;
}

void bunker_volume_finish(struct bunker_volume *volume)
{
	bunker_json_free(volume->json);
	*volume = (struct bunker_volume){0};
}

static void client_volume_finish_item(void *item)
{
	bunker_volume_finish(item);
}

static const struct list_kind volume_list = {"volumes", sizeof(struct bunker_volume),
	offsetof(struct bunker_volume, json), client_volume_decode_item, client_volume_finish_item};

int bunker_volume_list(struct bunker *b, struct bunker_volume_list *ret, struct bunker_error *e)
{
	autobuf target = {0};
	void *items;
	buf_append_str(&target, "/v1/volumes");
	int r = client_list(b, &target, &volume_list, 0, &items, &ret->count, e);
	if (r == 0)
		ret->items = items;
	return r;
}

void bunker_volume_list_finish(struct bunker_volume_list *list)
{
	client_list_finish(&volume_list, list->items, list->count);
	*list = (struct bunker_volume_list){0};
}

char *bunker_volume_list_json(const struct bunker_volume_list *list)
{
	return client_list_json(&volume_list, list->items, list->count);
}

int bunker_volume_create(struct bunker *b, const char *name, const char *size,
	struct bunker_volume *ret, struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	struct json_writer w = {.out = &body};
	cJSON *tree;
	buf_append_str(&target, "/v1/volumes");
	json_begin_object(&w);
	json_put_string(&w, "name", name);
	if (size)
		json_put_string(&w, "size", size);
	json_end_object(&w);
	int r = client_call_json(b, "POST", &target, &body, &tree, e);
	return r < 0 ? r : client_volume_decode_item(tree, ret, e);
}

static void client_volume_append_path(struct buf *target, const char *ref)
{
	buf_append_str(target, "/v1/volumes/");
	client_call_append_escaped(target, ref);
}

int bunker_volume_get(
	struct bunker *b, const char *ref, struct bunker_volume *ret, struct bunker_error *e)
{
	autobuf target = {0};
	cJSON *tree;
	client_volume_append_path(&target, ref);
	int r = client_call_json(b, "GET", &target, NULL, &tree, e);
	return r < 0 ? r : client_volume_decode_item(tree, ret, e);
}

int bunker_volume_delete(struct bunker *b, const char *ref, struct bunker_error *e)
{
	autobuf target = {0};
	client_volume_append_path(&target, ref);
	return client_call_nothing(b, "DELETE", &target, NULL, e);
}
