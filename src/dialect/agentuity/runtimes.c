/*
 * GET /sandbox/runtimes: the templates that sandboxes can be made of, by the names that `runtime`
 * takes. What is not listed is refused by create; no version stands in for another.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "box/template/build.h"
#include "dialect/agentuity/routes.h"

#define LIST_DEFAULT 50
#define LIST_MAX     1000
#define COUNT_MAX    10000

struct runtime {
	char id[8 + TEMPLATE_REF_MAX];
	char name[TEMPLATE_REF_MAX + 1];
	const char *description;
	int64_t created_ms;
};

struct runtimes {
	struct runtime *list;
	size_t count, room;
};

static void add(
	struct runtimes *all, const struct template_view *view, const char *tag, int64_t created_ms)
{
	if (all->count == COUNT_MAX)
		return;
	if (all->count == all->room) {
		all->room = all->room ? all->room * 2 : 16;
		all->list = realloc(all->list, all->room * sizeof *all->list);
		if (!all->list)
			abort();
	}
	struct runtime *r = &all->list[all->count++];
	snprintf(r->name, sizeof r->name, "%s%s%s", view->name, tag ? ":" : "", tag ? tag : "");
	snprintf(r->id, sizeof r->id, "srt_%s", r->name);
	r->description = view->description ? view->description : "";
	r->created_ms = created_ms;
}

/* A template by its name alone, if that means something, and by each of its other tags. */
static void collect(struct http_request *req, struct runtimes *all)
{
	struct tag_view tag;
	struct template_view view;
	const char *tenant = tenant_of(req);
	struct template *t = template_first(server_of(req)->box, tenant);
	for (; t; t = template_next(t, tenant)) {
		template_view(t, &view);
		if (view.built_in || view.latest)
			add(all, &view, NULL, view.created_ms);
		for (size_t i = 0; template_tag_at(t, i, &tag); i++)
			if (strcmp(tag.tag, TEMPLATE_LATEST) != 0)
				add(all, &view, tag.tag, tag.created_ms);
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct runtime *)a)->name, ((const struct runtime *)b)->name);
}

static int by_creation(const void *a, const void *b)
{
	const struct runtime *x = a, *y = b;
	return x->created_ms != y->created_ms
		       ? (x->created_ms > y->created_ms) - (x->created_ms < y->created_ms)
		       : by_name(a, b);
}

static void put_runtime(struct json_writer *w, const struct runtime *r)
{
	json_begin_object(w);
	json_put_string(w, "id", r->id);
	json_put_string(w, "name", r->name);
	if (r->description[0])
		json_put_string(w, "description", r->description);
	json_end_object(w);
}

static void handle_list(struct http_request *req)
{
	static const char *const sorts[] = {"name", "created", NULL};
	static const char *const directions[] = {"asc", "desc", NULL};
	struct error e;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct runtimes all = {0};
	int64_t limit = LIST_DEFAULT, offset = 0;
	int sort, direction;
	if (query_optional_number(req, "limit", 1, LIST_MAX, &limit, &e) < 0 ||
		query_optional_number(req, "offset", 0, INT32_MAX, &offset, &e) < 0 ||
		agentuity_query_word(req, "sort", sorts, &sort, &e) < 0 ||
		agentuity_query_word(req, "direction", directions, &direction, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	collect(req, &all);
	if (all.count)
		qsort(all.list, all.count, sizeof *all.list, sort == 0 ? by_name : by_creation);
	agentuity_begin_data(&w);
	json_begin_object(&w);
	json_key(&w, "runtimes");
	json_begin_array(&w);
	for (size_t i = (size_t)offset; i < all.count && limit > 0; i++, limit--)
		put_runtime(&w, &all.list[direction == 0 ? i : all.count - 1 - i]);
	json_end_array(&w);
	json_put_int(&w, "total", (int64_t)all.count);
	json_end_object(&w);
	free(all.list);
	agentuity_respond_data(req, 200, &w);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/runtimes", handle_list, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_runtime_table = ROUTE_TABLE(routes);
