/*
 * Lists: what the server tells in pages, as one array of structs. Each item leaves its page with
 * its own part of the tree.
 */
#pragma once

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "bunker.h"

struct list_kind {
	const char *key; /* of the array, in a page and in the JSON of the list */
	size_t size;     /* of an item */
	size_t json;     /* where in an item its struct bunker_json * is */
	/* Takes the tree, also when it fails. */
	int (*decode)(cJSON *tree, void *item, struct bunker_error *e);
	void (*finish)(void *item);
};

/* target: of the first page. limit 0: all of them, however many pages that takes. */
int client_list(struct bunker *b, const struct buf *target, const struct list_kind *kind,
	size_t limit, void **ret, size_t *ret_count, struct bunker_error *e);
/* Takes the items of one answer. */
int client_list_take(const cJSON *page, const struct list_kind *kind, void **ret, size_t *ret_count,
	struct bunker_error *e);
void client_list_finish(const struct list_kind *kind, void *items, size_t count);
/* {KEY: [...]}, for the caller to free. NULL: out of memory. */
char *client_list_json(const struct list_kind *kind, const void *items, size_t count);

/* Small enough a page that the answer stays within what json_parse takes. */
#define LIST_PAGE "50"
