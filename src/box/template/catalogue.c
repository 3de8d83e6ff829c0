/* Templates at the start and the end of the server: the built-in ones, and what the store has. */
#include "box/template/catalogue.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/mem.h"

static const struct {
	const char *name, *description;
	bool is_default;
} built_in[] = {
	{"base",
		"The host's /usr below a private, writable layer; user 'user'; nothing else of the host",
		true},
	{"code-interpreter-v1",
		"The same as base, under the name that E2B's code interpreter asks for", false},
};

static void add_template(void *arg, const void *stored)
{
	const struct template_row *row = stored;
	struct template *t = template_new(arg, row->id, row->tenant, row->name, row->description);
	t->created_ms = row->created_ms;
	template_add(t);
}

static void add_build(void *arg, const void *stored)
{
	const struct build_row *row = stored;
	struct catalogue *c = arg;
	struct template *t = NULL;
	HASH_FIND(by_id, c->templates, row->template_id, strlen(row->template_id), t);
	if (t && id_is_valid(row->id))
		build_log_found(build_from_row(t, row));
}

static void add_tag(void *arg, const void *stored)
{
	const struct tag_row *row = stored;
	struct catalogue *c = arg;
	struct template *t = NULL;
	struct build *build = NULL;
	HASH_FIND(by_id, c->templates, row->template_id, strlen(row->template_id), t);
	HASH_FIND(by_id, c->builds, row->build_id, strlen(row->build_id), build);
	if (t && build && build->template == t)
		tag_set(t, row->tag, build, row->created_ms);
}

static void add_layer(void *arg, const void *stored)
{
	layer_from_row(arg, stored);
}

int catalogue_open(struct box *b, struct error *e)
{
	struct catalogue *c = mem_new(sizeof *c);
	c->box = b;
	b->catalogue = c;
	for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++) {
		struct template *t = template_new(
			c, built_in[i].name, "", built_in[i].name, built_in[i].description);
		t->built_in = true;
		t->is_default = built_in[i].is_default;
		template_add(t);
	}
	if (store_each_template(b->store, add_template, c) < 0 ||
		store_each_build(b->store, add_build, c) < 0 ||
		store_each_tag(b->store, add_tag, c) < 0 ||
		store_each_layer(b->store, add_layer, c) < 0)
		return error_set(e, ERROR_INTERNAL, "cannot read the templates from the database");
	struct build *build, *next;
	HASH_ITER (by_id, c->builds, build, next)
		build_settle_loaded(build);
	return 0;
}

void catalogue_close(struct box *b)
{
	struct template *t, *next;
	struct build *build, *next_build;
	DL_FOREACH_SAFE (b->catalogue->order, t, next) {
		DL_FOREACH_SAFE (t->builds, build, next_build)
			build_detach(build);
		template_forget(t);
	}
	layers_close(b->catalogue);
	free(b->catalogue);
	b->catalogue = NULL;
}
