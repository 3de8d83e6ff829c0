/* What the server says about itself: its health, its templates. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/failure.h"

static const struct answer_field health_fields[] = {
	{"status", ANSWER_STRING, offsetof(struct bunker_health, status)},
	{"version", ANSWER_STRING, offsetof(struct bunker_health, version)},
};

static const struct answer_field template_fields[] = {
	{"name", ANSWER_STRING, offsetof(struct bunker_template, name)},
	{"description", ANSWER_STRING, offsetof(struct bunker_template, description)},
	{"default", ANSWER_BOOL, offsetof(struct bunker_template, is_default)},
};

int bunker_health(struct bunker *b, struct bunker_health *ret, struct bunker_error *e)
{
	autobuf target = {0};
	cJSON *tree;
	buf_append_str(&target, "/health");
	int r = client_call_json(b, "GET", &target, NULL, &tree, e);
	if (r < 0)
		return r;
	client_answer_decode(tree, health_fields, ARRAY_LEN(health_fields), ret);
	ret->json = client_answer_to_json(tree);
	return 0;
}

void bunker_health_finish(struct bunker_health *health)
{
	cJSON_Delete(client_answer_from_json(health->json));
	*health = (struct bunker_health){0};
}

int bunker_templates(struct bunker *b, struct bunker_template_list *ret, struct bunker_error *e)
{
	autobuf target = {0};
	autojson *tree = NULL;
	buf_append_str(&target, "/v1/templates");
	int r = client_call_json(b, "GET", &target, NULL, &tree, e);
	if (r < 0)
		return r;
	const cJSON *array = cJSON_GetObjectItemCaseSensitive(tree, "templates");
	struct bunker_template_list list = {0};
	list.items = calloc((size_t)cJSON_GetArraySize(array) + 1, sizeof *list.items);
	if (!list.items)
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	for (const cJSON *item = array ? array->child : NULL; item; item = item->next)
		client_answer_decode(item, template_fields, ARRAY_LEN(template_fields),
			&list.items[list.count++]);
	list.json = client_answer_to_json(take_ptr(tree));
	*ret = list;
	return 0;
}

void bunker_template_list_finish(struct bunker_template_list *list)
{
	free(list->items);
	cJSON_Delete(client_answer_from_json(list->json));
	*list = (struct bunker_template_list){0};
}
