/*
 * Templates and their tags: tables in memory, rows behind them. A change is made in memory at once
 * and told when its row is committed.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/mem.h"
#include "box/sandbox/later.h"
#include "box/sandbox/object.h"
#include "box/template/catalogue.h"

/* ---- tables ---- */

struct template *template_new(struct catalogue *c, const char *id, const char *tenant,
	const char *name, const char *description)
{
	struct template *t = mem_new(sizeof *t);
	t->catalogue = c;
	t->id = sandbox_copy_string(id);
	t->tenant = sandbox_copy_string(tenant);
	t->name = sandbox_copy_string(name);
	t->description = sandbox_copy_string(description);
	return t;
}

static void template_free(struct template *t)
{
	struct tag *tag, *next;
	DL_FOREACH_SAFE (t->tags, tag, next)
		free(tag);
	free(t->id);
	free(t->tenant);
	free(t->name);
	free(t->description);
	free(t);
}

static int in_order(const struct template *a, const struct template *b)
{
	if (a->built_in != b->built_in)
		return a->built_in ? -1 : 1;
	return strcmp(a->name, b->name);
}

void template_add(struct template *t)
{
	HASH_ADD_KEYPTR(by_id, t->catalogue->templates, t->id, strlen(t->id), t);
	DL_INSERT_INORDER(t->catalogue->order, t, in_order);
}

static void template_remove(struct template *t)
{
	HASH_DELETE(by_id, t->catalogue->templates, t);
	DL_DELETE(t->catalogue->order, t);
}

static bool is_for(const struct template *t, const char *tenant)
{
	return t->built_in || strcmp(t->tenant, tenant) == 0;
}

struct template *template_find(struct box *b, const char *tenant, const char *id_or_name)
{
	struct template *t;
	DL_FOREACH (b->catalogue->order, t)
		if (is_for(t, tenant) &&
			(strcmp(t->name, id_or_name) == 0 || strcmp(t->id, id_or_name) == 0))
			return t;
	return NULL;
}

static struct template *of_tenant(struct template *t, const char *tenant)
{
	while (t && !is_for(t, tenant))
		t = t->next;
	return t;
}

struct template *template_first(struct box *b, const char *tenant)
{
	return of_tenant(b->catalogue->order, tenant);
}

struct template *template_next(const struct template *t, const char *tenant)
{
	return of_tenant(t->next, tenant);
}

struct build *template_build_at(const struct template *t, size_t index)
{
	struct build *build = t->builds ? t->builds->prev : NULL; /* the last */
	for (; build && index > 0; index--)
		build = build == t->builds ? NULL : build->prev;
	return build;
}

static struct tag *tag_find(const struct template *t, const char *name)
{
	struct tag *tag;
	DL_FOREACH (t->tags, tag)
		if (strcmp(tag->name, name) == 0)
			return tag;
	return NULL;
}

/* ---- as values ---- */

static const struct tag_view *tags_of_template(
	const struct template *t, struct scratch *memory, size_t *count)
{
	const struct tag *tag;
	size_t n = 0;
	*count = 0;
	DL_COUNT(t->tags, tag, n);
	struct tag_view *list = scratch_alloc(memory, (n + 1) * sizeof *list);
	DL_FOREACH (t->tags, tag)
		list[(*count)++] = (struct tag_view){tag->name, tag->build->id, tag->created_ms};
	return list;
}

/* Sets the defaults of sandboxes of the newest build. */
static struct resources resources_of(const struct template *t)
{
	struct resources r = t->catalogue->box->config.defaults;
	const struct build *newest = template_build_at(t, 0);
	if (newest && newest->settings.cpu)
		r.cpu = newest->settings.cpu;
	if (newest && newest->settings.memory)
		r.memory = newest->settings.memory;
	return r;
}

void template_view(const struct template *t, struct scratch *memory, struct template_view *out)
{
	const struct tag *latest = tag_find(t, TEMPLATE_LATEST);
	const struct build *build;
	size_t n = 0;
	DL_COUNT(t->builds, build, n);
	struct build_view *builds = scratch_alloc(memory, (n + 1) * sizeof *builds);
	*out = (struct template_view){
		.id = t->id,
		.name = t->name,
		.description = t->description,
		.built_in = t->built_in,
		.is_default = t->is_default,
		.created_ms = t->created_ms,
		.resources = resources_of(t),
		.builds = builds,
		.build_count = n,
	};
	out->tags = tags_of_template(t, memory, &out->tag_count);
	for (size_t i = 0; (build = template_build_at(t, i)) != NULL; i++) {
		build_view(build, memory, &builds[i]);
		if (latest && latest->build == build)
			out->latest = &builds[i];
	}
	const struct build_view *shown = out->latest ? out->latest : n > 0 ? builds : NULL;
	out->status = shown ? shown->status : BUILD_READY;
	out->bytes = shown ? shown->bytes : 0;
}

/* ---- what a reference means ---- */

static int not_found(const char *ref, struct error *e)
{
	return error_set_field(
		e, ERROR_TEMPLATE_NOT_FOUND, "template", "there is no template '%.128s'", ref);
}

static struct template *default_template(struct box *b)
{
	struct template *t;
	DL_FOREACH (b->catalogue->order, t)
		if (t->is_default)
			return t;
	return NULL;
}

static int resolve_version(
	struct template *t, const char *ref, const char *tag, struct build **build, struct error *e)
{
	const struct tag *found = tag_find(t, tag[0] ? tag : TEMPLATE_LATEST);
	if (t->built_in)
		return tag[0] && strcmp(tag, TEMPLATE_LATEST) != 0 ? not_found(ref, e) : 0;
	if (found) {
		*build = found->build;
		return 0;
	}
	const struct build *newest = template_build_at(t, 0);
	if (!tag[0] && newest && newest->status != BUILD_READY)
		return error_set_field(e, ERROR_TEMPLATE_NOT_FOUND, "template",
			"nothing of the template '%.64s' is ready: its last build is %s", t->name,
			build_status_name(newest->status));
	return not_found(ref, e);
}

int template_resolve(struct box *b, const char *tenant, const char *ref, struct template **ret,
	struct build **build, struct error *e)
{
	char name[TEMPLATE_NAME_MAX + 1] = "", tag[TEMPLATE_TAG_MAX + 1] = "";
	*build = NULL;
	if (!ref) {
		*ret = default_template(b);
		return 0;
	}
	struct build *by_id = id_is_valid(ref) ? build_find(b, tenant, ref) : NULL;
	if (by_id && by_id->status == BUILD_READY) {
		*ret = by_id->template;
		*build = by_id;
		return 0;
	}
	if (template_split(ref, name, tag, NULL) < 0)
		return not_found(ref, e);
	struct template *t = template_find(b, tenant, name);
	if (!t)
		return not_found(ref, e);
	*ret = t;
	return resolve_version(t, ref, tag, build, e);
}

/* ---- changes ---- */

void template_store(const struct template *t, store_done_fn *done, void *arg)
{
	store_put_template(t->catalogue->box->store,
		&(struct template_row){t->id, t->tenant, t->name, t->description, t->created_ms},
		done, arg);
}

struct change {
	struct box *box;
	template_done_fn *done;
	void *arg;
};

static struct change *template_change_new(struct box *b, template_done_fn *done, void *arg)
{
	struct change *c = mem_new(sizeof *c);
	*c = (struct change){b, done, arg};
	return c;
}

static void template_change_stored(void *arg, int error)
{
	struct change *c = arg;
	struct error e;
	if (error)
		store_error(&e, error, "the change could not be stored");
	layers_collect(c->box->catalogue);
	c->done(c->arg, error ? &e : NULL);
	box_check_closed(c->box);
	free(c);
}

static int tags_in_order(const struct tag *a, const struct tag *b)
{
	return strcmp(a->name, b->name);
}

void tag_set(struct template *t, const char *name, struct build *build, int64_t now)
{
	struct tag *tag = tag_find(t, name);
	if (!tag) {
		tag = mem_new(sizeof *tag);
		memcpy(tag->name, name, strnlen(name, TEMPLATE_TAG_MAX));
		DL_INSERT_INORDER(t->tags, tag, tags_in_order);
	}
	tag->build = build;
	tag->created_ms = now;
}

static int refuse_built_in(const struct template *t, struct error *e)
{
	return error_set(e, ERROR_PERMISSION_DENIED,
		"the template '%s' is built in, and cannot be changed", t->name);
}

int template_tag(
	struct build *build, const char *tag, template_done_fn *done, void *arg, struct error *e)
{
	struct template *t = build->template;
	struct box *b = build->catalogue->box;
	size_t count = 0;
	const struct tag *each;
	if (template_check_tag(tag, "tag", e) < 0)
		return -1;
	if (!t || build->status != BUILD_READY)
		return error_set(
			e, ERROR_NOT_READY, "the build is not ready, and cannot have a tag");
	DL_COUNT(t->tags, each, count);
	if (count >= TAGS_PER_TEMPLATE && !tag_find(t, tag))
		return error_set(e, ERROR_QUOTA_EXCEEDED,
			"the template has %d tags, the most that is allowed", TAGS_PER_TEMPLATE);
	int64_t now = clock_wall_ms();
	tag_set(t, tag, build, now);
	store_put_tag(b->store, &(struct tag_row){t->id, tag, build->id, now},
		template_change_stored, template_change_new(b, done, arg));
	return 0;
}

int template_untag(
	struct template *t, const char *tag, template_done_fn *done, void *arg, struct error *e)
{
	struct box *b = t->catalogue->box;
	struct tag *found = tag_find(t, tag);
	if (t->built_in)
		return refuse_built_in(t, e);
	if (!found)
		return error_set(
			e, ERROR_NOT_FOUND, "the template '%s' has no tag '%.64s'", t->name, tag);
	DL_DELETE(t->tags, found);
	free(found);
	store_delete_tag(
		b->store, t->id, tag, template_change_stored, template_change_new(b, done, arg));
	return 0;
}

void template_forget(struct template *t)
{
	template_remove(t);
	template_free(t);
}

int template_delete(struct template *t, template_done_fn *done, void *arg, struct error *e)
{
	struct box *b = t->catalogue->box;
	struct build *build, *next;
	if (t->built_in)
		return refuse_built_in(t, e);
	DL_FOREACH (t->builds, build)
		if (build_in_use(build))
			return error_set(e, ERROR_IN_USE,
				"something stands on the template '%s': delete that first",
				t->name);
	template_remove(t);
	DL_FOREACH_SAFE (t->builds, build, next)
		build_detach(build);
	store_delete_template(
		b->store, t->id, template_change_stored, template_change_new(b, done, arg));
	template_free(t);
	return 0;
}
