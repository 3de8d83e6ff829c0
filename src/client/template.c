/* Templates: listed, looked up, tagged, deleted. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/failure.h"
#include "json/json.h"

static const struct answer_field template_fields[] = {
	{"id", ANSWER_STRING, offsetof(struct bunker_template, id)},
	{"name", ANSWER_STRING, offsetof(struct bunker_template, name)},
	{"description", ANSWER_STRING, offsetof(struct bunker_template, description)},
	{"status", ANSWER_STRING, offsetof(struct bunker_template, status)},
	{"default", ANSWER_BOOL, offsetof(struct bunker_template, is_default)},
	{"builtIn", ANSWER_BOOL, offsetof(struct bunker_template, is_built_in)},
	{"size", ANSWER_INTEGER, offsetof(struct bunker_template, size)},
};

static const struct answer_field info_fields[] = {
	{"name", ANSWER_STRING, offsetof(struct bunker_template_info, name)},
	{"description", ANSWER_STRING, offsetof(struct bunker_template_info, description)},
};

static const cJSON *client_template_member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* "a b" with a NUL; where they begin is the caller's to know. */
static void append_tags(const cJSON *template, struct buf *out)
{
	const cJSON *item;
	size_t begin = out->len;
	cJSON_ArrayForEach(item, client_template_member(template, "tags"))
	{
		const char *tag = cJSON_GetStringValue(client_template_member(item, "tag"));
		if (out->len > begin)
			buf_append_char(out, ' ');
		buf_append_str(out, tag ? tag : "");
	}
	buf_append_char(out, '\0');
}

int bunker_templates(struct bunker *b, struct bunker_template_list *ret, struct bunker_error *e)
{
	autobuf target = {0}, tags = {0};
	autojson *tree = NULL;
	buf_append_str(&target, "/v1/templates");
	int r = client_call_json(b, "GET", &target, NULL, &tree, e);
	if (r < 0)
		return r;
	const cJSON *array = client_template_member(tree, "templates"), *item;
	struct bunker_template_list list = {0};
	list.items = calloc((size_t)cJSON_GetArraySize(array) + 1, sizeof *list.items);
	cJSON_ArrayForEach(item, array) append_tags(item, &tags);
	list.memory = buf_take_str(&tags);
	if (!list.items || !list.memory) {
		bunker_template_list_finish(&list);
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	}
	const char *next = list.memory;
	cJSON_ArrayForEach(item, array)
	{
		struct bunker_template *t = &list.items[list.count++];
		client_answer_decode(item, template_fields, ARRAY_LEN(template_fields), t);
		t->tags = next;
		next += strlen(next) + 1;
	}
	list.json = client_answer_to_json(take_ptr(tree));
	*ret = list;
	return 0;
}

void bunker_template_list_finish(struct bunker_template_list *list)
{
	free(list->items);
	free(list->memory);
	cJSON_Delete(client_answer_from_json(list->json));
	*list = (struct bunker_template_list){0};
}

int bunker_template_resolve(
	struct bunker *b, const char *ref, struct bunker_template_info *ret, struct bunker_error *e)
{
	autobuf target = {0};
	autojson *tree = NULL;
	struct bunker_template_info info = {0};
	buf_append_str(&target, "/v1/templates/resolve?ref=");
	client_call_append_escaped(&target, ref);
	int r = client_call_json(b, "GET", &target, NULL, &tree, e);
	if (r < 0)
		return r;
	const cJSON *build = client_template_member(tree, "build");
	const char *id = cJSON_GetStringValue(client_template_member(build, "id"));
	client_answer_decode(tree, info_fields, ARRAY_LEN(info_fields), &info);
	info.build = id ? id : "";
	if (client_answer_pairs(client_template_member(build, "env"), &info.env, &info.env_count) <
		0)
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	info.json = client_answer_to_json(take_ptr(tree));
	*ret = info;
	return 0;
}

void bunker_template_info_finish(struct bunker_template_info *info)
{
	free(info->env);
	cJSON_Delete(client_answer_from_json(info->json));
	*info = (struct bunker_template_info){0};
}

static void client_template_begin_target(struct buf *target, const char *name, const char *tag)
{
	buf_append_str(target, "/v1/templates/");
	client_call_append_escaped(target, name);
	if (!tag)
		return;
	buf_append_str(target, "/tags/");
	client_call_append_escaped(target, tag);
}

int bunker_template_get(
	struct bunker *b, const char *name, struct bunker_json **ret, struct bunker_error *e)
{
	autobuf target = {0};
	cJSON *tree;
	client_template_begin_target(&target, name, NULL);
	int r = client_call_json(b, "GET", &target, NULL, &tree, e);
	if (r == 0)
		*ret = client_answer_to_json(tree);
	return r;
}

int bunker_template_tag(struct bunker *b, const char *name, const char *tag, const char *build,
	struct bunker_error *e)
{
	autobuf target = {0}, body = {0};
	struct json_writer w = {.out = &body};
	client_template_begin_target(&target, name, tag);
	json_begin_object(&w);
	if (build)
		json_put_string(&w, "build", build);
	json_end_object(&w);
	return client_call_nothing(b, "PUT", &target, &body, e);
}

int bunker_template_untag(
	struct bunker *b, const char *name, const char *tag, struct bunker_error *e)
{
	autobuf target = {0};
	client_template_begin_target(&target, name, tag);
	return client_call_nothing(b, "DELETE", &target, NULL, e);
}

int bunker_template_delete(struct bunker *b, const char *name, struct bunker_error *e)
{
	autobuf target = {0};
	client_template_begin_target(&target, name, NULL);
	return client_call_nothing(b, "DELETE", &target, NULL, e);
}
