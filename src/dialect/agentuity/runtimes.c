/*
 * GET /sandbox/runtimes: the templates that sandboxes can be made of, by the names that `runtime`
 * takes. What is not listed is refused by create; no version stands in for another.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/scratch.h"
#include "dialect/agentuity/routes.h"
#include "op/template.h"

#define LIST_DEFAULT 50
#define LIST_MAX     1000
#define COUNT_MAX    10000

struct runtime {
	char id[8 + TEMPLATE_REF_MAX];
	char name[TEMPLATE_REF_MAX + 1];
	const char *description;
	int64_t created_ms;
};

/* What `own` is. */
struct runtimes {
	struct runtime *list;
	size_t count, room;
	struct scratch memory; /* of the descriptions */
	int64_t limit, offset;
	int sort, direction;
};

static const char *runtime_copy(struct runtimes *all, const char *text)
{
	size_t size = strlen(text) + 1;
	return memcpy(scratch_alloc(&all->memory, size), text, size);
}

static void runtime_add(
	struct runtimes *all, const struct template_view *view, const char *tag, int64_t created_ms)
{
	if (all->count == COUNT_MAX)
		return;
	if (all->count == all->room) {
		all->room = all->room ? all->room * 2 : 16;
		all->list = mem_resize(all->list, all->room, sizeof *all->list);
	}
	struct runtime *r = &all->list[all->count++];
	snprintf(r->name, sizeof r->name, "%s%s%s", view->name, tag ? ":" : "", tag ? tag : "");
	snprintf(r->id, sizeof r->id, "srt_%s", r->name);
	r->description = view->description ? runtime_copy(all, view->description) : "";
	r->created_ms = created_ms;
}

/* A template by its name alone, if that means something, and by each of its other tags. */
static void runtimes_collect(struct runtimes *all, const struct template_view *view)
{
	if (view->built_in || view->latest)
		runtime_add(all, view, NULL, view->created_ms);
	for (size_t i = 0; i < view->tag_count; i++)
		if (strcmp(view->tags[i].tag, TEMPLATE_LATEST) != 0)
			runtime_add(all, view, view->tags[i].tag, view->tags[i].created_ms);
}

static int runtime_by_name(const void *a, const void *b)
{
	return strcmp(((const struct runtime *)a)->name, ((const struct runtime *)b)->name);
}

static int runtime_by_creation(const void *a, const void *b)
{
	const struct runtime *x = a, *y = b;
	return x->created_ms != y->created_ms
		       ? (x->created_ms > y->created_ms) - (x->created_ms < y->created_ms)
		       : runtime_by_name(a, b);
}

static const struct field runtime_fields[] = {
	{.name = "id", FIELD_CHARS_AT(struct runtime, id), .flags = FIELD_SHOWN},
	{.name = "name", FIELD_CHARS_AT(struct runtime, name), .flags = FIELD_SHOWN},
	{.name = "description",
		FIELD_AT(TEXT, struct runtime, description),
		.flags = FIELD_SHOWN | FIELD_OMIT_EMPTY},
};
static const struct field_table runtime_model = {
	runtime_fields, ARRAY_LEN(runtime_fields), sizeof(struct runtime)};

static void runtimes_encode(const struct runtimes *all, struct buf *out)
{
	struct json_writer w = {.out = out};
	int64_t left = all->limit;
	agentuity_begin_data(&w);
	json_begin_object(&w);
	json_key(&w, "runtimes");
	json_begin_array(&w);
	for (size_t i = (size_t)all->offset; i < all->count && left > 0; i++, left--)
		json_encode_object(&w, &runtime_model,
			&all->list[all->direction == 0 ? i : all->count - 1 - i], NULL);
	json_end_array(&w);
	json_put_int(&w, "total", (int64_t)all->count);
	json_end_object(&w);
	json_end_object(&w);
}

static int runtimes_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct runtimes *all = a->own;
	(void)e;
	if (event->kind == OP_ROW) {
		runtimes_collect(all, event->template);
		return 0;
	}
	if (all->count)
		qsort(all->list, all->count, sizeof *all->list,
			all->sort == 0 ? runtime_by_name : runtime_by_creation);
	runtimes_encode(all, &a->out);
	return 0;
}

static void runtimes_finish(struct answer *a)
{
	struct runtimes *all = a->own;
	free(all->list);
	scratch_finish(&all->memory);
}

static void handle_runtime_list(struct http_request *req)
{
	static const char *const sorts[] = {"name", "created", NULL};
	static const char *const directions[] = {"asc", "desc", NULL};
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct runtimes),
		.put = runtimes_put,
		.finish = runtimes_finish};
	struct error e;
	struct answer *a = agentuity_answer(req, &form);
	struct runtimes *all = a->own;
	all->limit = LIST_DEFAULT;
	if (query_optional_number(req, "limit", 1, LIST_MAX, &all->limit, &e) < 0 ||
		query_optional_number(req, "offset", 0, INT32_MAX, &all->offset, &e) < 0 ||
		agentuity_query_word(req, "sort", sorts, &all->sort, &e) < 0 ||
		agentuity_query_word(req, "direction", directions, &all->direction, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_template_list(&a->call);
	answer_run(a);
}

static const struct http_route runtime_routes[] = {
	{HTTP_GET, "/runtimes", handle_runtime_list, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_runtime_table = ROUTE_TABLE(runtime_routes);
