/* API keys: made, listed, rotated, taken back. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/list.h"
#include "json/json.h"

#define FIELD(json_name, member)                                                                   \
	{                                                                                          \
		json_name, ANSWER_STRING, offsetof(struct bunker_key, member)                      \
	}

static const struct answer_field key_fields[] = {
	FIELD("id", id),
	FIELD("name", name),
	FIELD("tenant", tenant),
	FIELD("scope", scope),
	FIELD("origin", origin),
	FIELD("createdAt", created_at),
	FIELD("expiresAt", expires_at),
	FIELD("lastUsedAt", last_used_at),
	FIELD("rotatedAt", rotated_at),
	FIELD("previousUntil", previous_until),
	FIELD("key", key),
};

static int client_key_decode_item(cJSON *tree, void *item, struct bunker_error *e)
{
	struct bunker_key *key = item;
	(void)e;
	*key = (struct bunker_key){.json = client_answer_to_json(tree)};
	client_answer_decode(tree, key_fields, ARRAY_LEN(key_fields), key);
	return 0;
}

void bunker_key_finish(struct bunker_key *key)
{
	bunker_json_free(key->json);
	*key = (struct bunker_key){0};
}

static void client_key_finish_item(void *item)
{
	bunker_key_finish(item);
}

static const struct list_kind key_list = {"keys", sizeof(struct bunker_key),
	offsetof(struct bunker_key, json), client_key_decode_item, client_key_finish_item};

int bunker_key_list(
	struct bunker *b, const char *tenant, struct bunker_key_list *ret, struct bunker_error *e)
{
	autobuf target = {0};
	void *items;
	buf_append_str(&target, "/v1/keys");
	if (tenant) {
		buf_append_str(&target, "?tenant=");
		client_call_append_escaped(&target, tenant);
	}
	int r = client_list(b, &target, &key_list, 0, &items, &ret->count, e);
	if (r == 0)
		ret->items = items;
	return r;
}

void bunker_key_list_finish(struct bunker_key_list *list)
{
	client_list_finish(&key_list, list->items, list->count);
	*list = (struct bunker_key_list){0};
}

char *bunker_key_list_json(const struct bunker_key_list *list)
{
	return client_list_json(&key_list, list->items, list->count);
}

static void client_key_put(struct json_writer *w, const char *name, const char *value)
{
	if (value)
		json_put_string(w, name, value);
}

static int client_key_post(struct bunker *b, struct buf *target, struct buf *body,
	struct bunker_key *ret, struct bunker_error *e)
{
	cJSON *tree;
	int r = client_call_json(b, "POST", target, body, &tree, e);
	return r < 0 ? r : client_key_decode_item(tree, ret, e);
}

int bunker_key_create(struct bunker *b, const struct bunker_key_options *options,
	struct bunker_key *ret, struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	struct json_writer w = {.out = &body};
	buf_append_str(&target, "/v1/keys");
	json_begin_object(&w);
	client_key_put(&w, "name", options->name);
	client_key_put(&w, "tenant", options->tenant);
	client_key_put(&w, "scope", options->scope);
	client_key_put(&w, "expiresIn", options->expires_in);
	json_end_object(&w);
	return client_key_post(b, &target, &body, ret, e);
}

static void client_key_append_path(struct buf *target, const char *ref)
{
	buf_append_str(target, "/v1/keys/");
	client_call_append_escaped(target, ref);
}

int bunker_key_get(
	struct bunker *b, const char *ref, struct bunker_key *ret, struct bunker_error *e)
{
	autobuf target = {0};
	cJSON *tree;
	client_key_append_path(&target, ref);
	int r = client_call_json(b, "GET", &target, NULL, &tree, e);
	return r < 0 ? r : client_key_decode_item(tree, ret, e);
}

int bunker_key_rotate(struct bunker *b, const char *ref, const char *grace, const char *expires_in,
	struct bunker_key *ret, struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	struct json_writer w = {.out = &body};
	client_key_append_path(&target, ref);
	buf_append_str(&target, "/rotate");
	json_begin_object(&w);
	client_key_put(&w, "grace", grace);
	client_key_put(&w, "expiresIn", expires_in);
	json_end_object(&w);
	return client_key_post(b, &target, &body, ret, e);
}

int bunker_key_revoke(struct bunker *b, const char *ref, struct bunker_error *e)
{
	autobuf target = {0};
	client_key_append_path(&target, ref);
	return client_call_nothing(b, "DELETE", &target, NULL, e);
}
