/* Secrets: put, listed, deleted. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/list.h"
#include "json/json.h"

#define FIELD(json_name, kind, member)                                                             \
	{                                                                                          \
		json_name, kind, offsetof(struct bunker_secret, member)                            \
	}

static const struct answer_field secret_fields[] = {
	FIELD("name", ANSWER_STRING, name),
	FIELD("createdAt", ANSWER_STRING, created_at),
	FIELD("updatedAt", ANSWER_STRING, updated_at),
	FIELD("sandboxes", ANSWER_INTEGER, sandboxes),
	FIELD("readable", ANSWER_BOOL, readable),
};

static int client_secret_decode_item(cJSON *tree, void *item, struct bunker_error *e)
{
	struct bunker_secret *secret = item;
	(void)e;
	*secret = (struct bunker_secret){.json = client_answer_to_json(tree)};
	client_answer_decode(tree, secret_fields, ARRAY_LEN(secret_fields), secret);
	return 0;
}

void bunker_secret_finish(struct bunker_secret *secret)
{
	bunker_json_free(secret->json);
	*secret = (struct bunker_secret){0};
}

static void client_secret_finish_item(void *item)
{
	bunker_secret_finish(item);
}

static const struct list_kind secret_list = {"secrets", sizeof(struct bunker_secret),
	offsetof(struct bunker_secret, json), client_secret_decode_item, client_secret_finish_item};

int bunker_secret_list(struct bunker *b, struct bunker_secret_list *ret, struct bunker_error *e)
{
	autobuf target = {0};
	void *items;
	buf_append_str(&target, "/v1/secrets");
	int r = client_list(b, &target, &secret_list, 0, &items, &ret->count, e);
	if (r == 0)
		ret->items = items;
	return r;
}

void bunker_secret_list_finish(struct bunker_secret_list *list)
{
	client_list_finish(&secret_list, list->items, list->count);
	*list = (struct bunker_secret_list){0};
}

char *bunker_secret_list_json(const struct bunker_secret_list *list)
{
	return client_list_json(&secret_list, list->items, list->count);
}

static void client_secret_append_path(struct buf *target, const char *name)
{
	buf_append_str(target, "/v1/secrets/");
	client_call_append_escaped(target, name);
}

int bunker_secret_put(struct bunker *b, const char *name, const char *value,
	struct bunker_secret *ret, struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	struct json_writer w = {.out = &body};
	cJSON *tree;
	client_secret_append_path(&target, name);
	json_begin_object(&w);
	json_put_string(&w, "value", value);
	json_end_object(&w);
	int r = client_call_json(b, "PUT", &target, &body, &tree, e);
	if (body.data)
		explicit_bzero(body.data, body.cap);
	return r < 0 ? r : client_secret_decode_item(tree, ret, e);
}

int bunker_secret_get(
	struct bunker *b, const char *name, struct bunker_secret *ret, struct bunker_error *e)
{
	autobuf target = {0};
	cJSON *tree;
	client_secret_append_path(&target, name);
	int r = client_call_json(b, "GET", &target, NULL, &tree, e);
	return r < 0 ? r : client_secret_decode_item(tree, ret, e);
}

int bunker_secret_delete(struct bunker *b, const char *name, struct bunker_error *e)
{
	autobuf target = {0};
	client_secret_append_path(&target, name);
	return client_call_nothing(b, "DELETE", &target, NULL, e);
}
