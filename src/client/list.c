#include "client/list.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/failure.h"
#include "json/json.h"

struct growing {
	const struct list_kind *kind;
	char *items;
	size_t count, limit;
};

static int client_list_fail_memory(struct bunker_error *e)
{
	return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
}

static bool client_list_is_full(const struct growing *g)
{
	return g->limit != 0 && g->count >= g->limit;
}

static int append_item(struct growing *g, cJSON *tree, struct bunker_error *e)
{
	char *items = reallocarray(g->items, g->count + 1, g->kind->size);
	if (!items) {
		cJSON_Delete(tree);
		return client_list_fail_memory(e);
	}
	g->items = items;
	int r = g->kind->decode(tree, items + g->count * g->kind->size, e);
	if (r == 0)
		g->count++;
	return r;
}

static int append_page(struct growing *g, const cJSON *page, struct bunker_error *e)
{
	cJSON *array = cJSON_GetObjectItemCaseSensitive(page, g->kind->key);
	if (!cJSON_IsArray(array))
		return client_fail(e, BUNKER_INVALID_RESPONSE, "the server's answer has no list");
	int r = 0;
	while (r == 0 && array->child && !client_list_is_full(g))
		r = append_item(g, cJSON_DetachItemViaPointer(array, array->child), e);
	return r;
}

/* *cursor is where the page starts (NULL: the first one), and then where the next one does. */
static int client_list_read_page(struct bunker *b, const struct buf *first, char **cursor,
	struct growing *g, struct bunker_error *e)
{
	autobuf target = {0};
	autojson *page = NULL;
	buf_append(&target, first->data, first->len);
	client_call_append_query(&target, "cursor", *cursor);
	int r = client_call_json(b, "GET", &target, NULL, &page, e);
	if (r == 0)
		r = append_page(g, page, e);
	if (r < 0)
		return r;
	const cJSON *next = cJSON_GetObjectItemCaseSensitive(page, "nextCursor");
	free(*cursor);
	*cursor = NULL;
	if (!cJSON_IsString(next) || !*next->valuestring)
		return 0;
	*cursor = strdup(next->valuestring);
	return *cursor ? 0 : client_list_fail_memory(e);
}

static int client_list_give(const struct growing *g, int r, void **ret, size_t *ret_count)
{
	if (r < 0) {
		client_list_finish(g->kind, g->items, g->count);
		return r;
	}
	*ret = g->items;
	*ret_count = g->count;
	return 0;
}

int client_list(struct bunker *b, const struct buf *target, const struct list_kind *kind,
	size_t limit, void **ret, size_t *ret_count, struct bunker_error *e)
{
	struct growing g = {.kind = kind, .limit = limit};
	autofree char *cursor = NULL;
	int r;
	if (target->failed)
		return client_list_fail_memory(e);
	do
		r = client_list_read_page(b, target, &cursor, &g, e);
	while (r == 0 && cursor && !client_list_is_full(&g));
	return client_list_give(&g, r, ret, ret_count);
}

int client_list_take(const cJSON *page, const struct list_kind *kind, void **ret, size_t *ret_count,
	struct bunker_error *e)
{
	struct growing g = {.kind = kind};
	return client_list_give(&g, append_page(&g, page, e), ret, ret_count);
}

void client_list_finish(const struct list_kind *kind, void *items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		kind->finish((char *)items + i * kind->size);
	free(items);
}

char *client_list_json(const struct list_kind *kind, const void *items, size_t count)
{
	autobuf text = {0};
	struct json_writer w = {.out = &text};
	json_begin_object(&w);
	json_key(&w, kind->key);
	json_begin_array(&w);
	for (size_t i = 0; i < count; i++) {
		const char *item = (const char *)items + i * kind->size;
		autofree char *json = bunker_json_text(
			*(struct bunker_json *const *)(const void *)(item + kind->json));
		if (!json)
			return NULL;
		json_raw(&w, json);
	}
	json_end_array(&w);
	json_end_object(&w);
	return buf_take_str(&text);
}
