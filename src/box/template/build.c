/*
 * Builds: their place in the tables, their rows, their ends. What they do is in build_job.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/sandbox/later.h"
#include "box/sandbox/maxima.h"
#include "box/template/catalogue.h"

static enum build_status template_build_status_of(const char *name)
{
	for (int i = 0; i < BUILD_STATUS_COUNT; i++)
		if (strcmp(build_status_name((enum build_status)i), name) == 0)
			return (enum build_status)i;
	return BUILD_FAILED;
}

static bool template_build_has_ended(const struct build *build)
{
	return build->status >= BUILD_READY;
}

/* ---- memory ---- */

struct build *build_unnamed(struct catalogue *c, const char *tenant)
{
	struct build *build = mem_new(sizeof *build);
	build->catalogue = c;
	id_generate(build->id);
	settings_set_text(&build->tenant, tenant);
	build->created_ms = clock_wall_ms();
	return build;
}

static struct build *build_new(struct template *t, const char *id)
{
	struct build *build = build_unnamed(t->catalogue, t->tenant);
	build->template = t;
	memcpy(build->id, id, ID_SIZE);
	DL_APPEND(t->builds, build);
	HASH_ADD(by_id, t->catalogue->builds, id, ID_LEN, build);
	return build;
}

static void free_if_unused(struct build *build)
{
	if (build->template || build->watchers || build->job)
		return;
	build_log_remove(build);
	char *const strings[] = {build->tenant, build->reason, build->origin, build->digest};
	for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
		free(strings[i]);
	settings_finish(&build->settings);
	buf_finish(&build->tags);
	free(build);
}

struct build *build_from_row(struct template *t, const struct build_row *row)
{
	struct build *build = build_new(t, row->id);
	build->status = template_build_status_of(row->status);
	settings_set_text(&build->reason, row->reason);
	settings_set_text(&build->origin, row->origin);
	settings_set_text(&build->digest, row->digest);
	build->failed_step = (int)row->failed_step;
	snprintf(build->root, sizeof build->root, "%s", row->root);
	snprintf(build->layer, sizeof build->layer, "%s", row->layer);
	build->created_ms = row->created_ms;
	build->started_ms = row->started_ms;
	build->ended_ms = row->ended_ms;
	build->bytes = row->bytes;
	settings_unpack(&build->settings, row->config.data, row->config.len);
	if (row->tags.len)
		buf_append(&build->tags, row->tags.data, row->tags.len);
	return build;
}

void build_store(const struct build *build, store_done_fn *done, void *arg)
{
	autobuf config = {0};
	settings_pack(&build->settings, &config);
	store_put_build(build->catalogue->box->store,
		&(struct build_row){
			.id = build->id,
			.template_id = build->template->id,
			.status = build_status_name(build->status),
			.reason = build->reason,
			.origin = build->origin,
			.digest = build->digest,
			.root = build->root,
			.layer = build->layer,
			.failed_step = build->failed_step,
			.created_ms = build->created_ms,
			.started_ms = build->started_ms,
			.ended_ms = build->ended_ms,
			.bytes = build->bytes,
			.config = {config.data, config.len},
			.tags = {build->tags.data, build->tags.len},
		},
		done, arg);
}

struct storing {
	void (*stored)(void *arg);
	void *arg;
};

static void now_stored(void *arg, int error)
{
	struct storing *s = arg;
	(void)error; /* it is logged; a restart treats the build as one that never began */
	s->stored(s->arg);
	free(s);
}

void build_when_stored(struct build *build, void (*stored)(void *arg), void *arg)
{
	struct storing *s = mem_new(sizeof *s);
	*s = (struct storing){stored, arg};
	build_store(build, now_stored, s);
}

struct build *build_find(struct box *b, const char *tenant, const char *id)
{
	struct build *build = NULL;
	if (!id_is_valid(id))
		return NULL;
	HASH_FIND(by_id, b->catalogue->builds, id, ID_LEN, build);
	return build && strcmp(build->tenant, tenant) == 0 ? build : NULL;
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static const char *const *tags_of_build(const struct build *build, struct scratch *memory)
{
	const struct tag *tags = build->template ? build->template->tags : NULL, *tag;
	size_t count = 0;
	DL_FOREACH (tags, tag)
		count += tag->build == build;
	const char **list = scratch_alloc(memory, (count + 1) * sizeof *list);
	count = 0;
	DL_FOREACH (tags, tag)
		if (tag->build == build)
			list[count++] = tag->name;
	return list;
}

void build_view(const struct build *build, struct scratch *memory, struct build_view *out)
{
	*out = (struct build_view){
		.id = build->id,
		.template_id = build->template ? build->template->id : "",
		.name = build->template ? build->template->name : "",
		.status = build->status,
		.reason = or_empty(build->reason),
		.code = build->code ? build->code : ERROR_BUILD_FAILED,
		.failed_step = build->failed_step,
		.from = or_empty(build->origin),
		.digest = or_empty(build->digest),
		.created_ms = build->created_ms,
		.started_ms = build->started_ms,
		.ended_ms = build->ended_ms,
		.bytes = build->bytes,
		.log_entries = build->log.entries,
		.tags = tags_of_build(build, memory),
	};
	settings_config(&build->settings, &out->config);
}

void build_unwatch(struct build *build, struct build_watcher *w)
{
	DL_DELETE(build->watchers, w);
	free_if_unused(build);
}

/* ---- creation ---- */

static struct template *own_template(struct catalogue *c, const char *tenant, const char *name)
{
	struct template *t;
	DL_FOREACH (c->order, t)
		if (!t->built_in && strcmp(t->tenant, tenant) == 0 && strcmp(t->name, name) == 0)
			return t;
	return NULL;
}

static int template_build_check_quota(
	struct catalogue *c, const char *tenant, bool new_template, struct error *e)
{
	unsigned templates = 0, open = 0;
	const struct template *t;
	const struct build *build;
	DL_FOREACH (c->order, t)
		templates += !t->built_in && strcmp(t->tenant, tenant) == 0;
	for (build = c->builds; build; build = build->by_id.next)
		open += strcmp(build->tenant, tenant) == 0 && !template_build_has_ended(build);
	if (new_template && templates >= TEMPLATES_PER_TENANT)
		return error_set(e, ERROR_QUOTA_EXCEEDED, "the limit of %d templates is reached",
			TEMPLATES_PER_TENANT);
	if (open >= BUILDS_OPEN_PER_TENANT)
		return error_set(e, ERROR_QUOTA_EXCEEDED,
			"%d builds have not ended yet, the most that is allowed",
			BUILDS_OPEN_PER_TENANT);
	return 0;
}

/* Names that the API's paths use themselves. */
static bool is_reserved(const char *name)
{
	static const char *const reserved[] = {"builds", "imports", "contexts", "resolve"};
	for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
		if (strcmp(reserved[i], name) == 0)
			return true;
	return false;
}

static int check_new(struct catalogue *c, const struct build_new *what, struct error *e)
{
	const struct template *t;
	if (c->box->closing)
		return error_set(e, ERROR_UNAVAILABLE, "the server is shutting down");
	if (template_check_name(what->name, "name", e) < 0)
		return -1;
	DL_FOREACH (c->order, t)
		if (t->built_in && strcmp(t->name, what->name) == 0)
			return error_set_field(e, ERROR_NAME_TAKEN, "name",
				"the template '%s' is built in, and cannot be changed", t->name);
	if (is_reserved(what->name))
		return error_set_field(e, ERROR_NAME_TAKEN, "name",
			"'%s' cannot be the name of a template", what->name);
	for (size_t i = 0; what->tags && what->tags[i]; i++) {
		if (i == TAGS_PER_TEMPLATE)
			return error_set_field(e, ERROR_INVALID_FIELD, "tags",
				"a build can have %d tags at most", TAGS_PER_TEMPLATE);
		if (template_check_tag(what->tags[i], "tags", e) < 0)
			return -1;
	}
	const struct resources wanted = {.memory = what->memory, .cpu = what->cpu};
	if (maxima_check(c->box, &wanted, e) < 0)
		return -1;
	return template_build_check_quota(
		c, what->tenant, !own_template(c, what->tenant, what->name), e);
}

struct making {
	struct build *build;
	struct build_watcher hold; /* its template may be deleted before it is stored */
	build_made_fn *made;
	void *arg;
};

static void template_build_made(void *arg, int error)
{
	struct making *m = arg;
	struct build *build = m->build;
	struct box *b = build->catalogue->box;
	struct error e;
	if (error)
		store_error(&e, error, "the build could not be stored");
	else if (!build->template)
		error_set(&e, ERROR_NOT_FOUND, "the template was deleted meanwhile");
	bool made = !error && build->template;
	m->made(m->arg, made ? build : NULL, made ? NULL : &e);
	build_unwatch(build, &m->hold);
	free(m);
	box_check_closed(b);
}

static struct template *obtain_template(struct catalogue *c, const struct build_new *what)
{
	char id[ID_SIZE];
	struct template *t = own_template(c, what->tenant, what->name);
	if (!t) {
		id_generate(id);
		t = template_new(c, id, what->tenant, what->name, "");
		t->created_ms = clock_wall_ms();
		template_add(t);
	}
	if (what->description)
		settings_set_text(&t->description, what->description);
	template_store(t, NULL, NULL);
	return t;
}

int build_create(struct box *b, const struct build_new *what, build_made_fn *made, void *arg,
	struct error *e)
{
	static const char *const latest[] = {TEMPLATE_LATEST, NULL};
	char id[ID_SIZE];
	if (check_new(b->catalogue, what, e) < 0)
		return -1;
	id_generate(id);
	struct build *build = build_new(obtain_template(b->catalogue, what), id);
	build->created_ms = clock_wall_ms();
	build->settings.memory = what->memory;
	build->settings.cpu = what->cpu;
	settings_set_list(&build->tags, what->tags ? what->tags : latest);
	struct making *m = mem_new(sizeof *m);
	*m = (struct making){.build = build, .made = made, .arg = arg};
	build_hold(build, &m->hold);
	build_store(build, template_build_made, m);
	return 0;
}

/* ---- the end ---- */

static void end_stored(void *arg, int error)
{
	struct box *b = arg;
	if (error)
		log_error("a build's end could not be stored");
	box_check_closed(b);
}

/* The tags are in rows of their own before the wish for them is forgotten. */
void build_take_tags(struct build *build)
{
	struct box *b = build->catalogue->box;
	int64_t now = clock_wall_ms();
	if (build->status != BUILD_READY || build->tags.len == 0)
		return;
	for (size_t at = 0; at < build->tags.len; at += strlen(build->tags.data + at) + 1) {
		const char *tag = build->tags.data + at;
		tag_set(build->template, tag, build, now);
		store_put_tag(b->store, &(struct tag_row){build->template->id, tag, build->id, now},
			NULL, NULL);
	}
	buf_finish(&build->tags);
	build_store(build, end_stored, b);
}

void build_end(struct build *build, enum build_status status, int step, const char *reason)
{
	struct box *b = build->catalogue->box;
	build->status = status;
	build->failed_step = step;
	settings_set_text(&build->reason, reason);
	build->ended_ms = clock_wall_ms();
	if (build->template) {
		build_store(build, end_stored, b);
		build_take_tags(build);
	}
	build_changed(build);
}

void build_job_gone(struct build *build)
{
	build->job = NULL;
	free_if_unused(build);
}

void build_settle_loaded(struct build *build)
{
	if (!template_build_has_ended(build) && build->started_ms > 0)
		build_end(build, BUILD_FAILED, BUILD_STEP_BASE,
			"the server ended while it was being built");
	else
		build_take_tags(build);
}

void build_cancel(struct build *build)
{
	if (template_build_has_ended(build))
		return;
	if (build->job)
		build_job_cancel(build->job);
	else
		build_end(build, BUILD_CANCELLED, BUILD_STEP_BASE, "it was cancelled");
}

static bool has_tag(const struct build *build)
{
	const struct tag *tag;
	DL_FOREACH (build->template->tags, tag)
		if (tag->build == build)
			return true;
	return false;
}

/* A version without a tag goes when nothing stands on it; of the others the last are kept. */
static void template_build_prune(struct template *t)
{
	struct build *build = template_build_at(t, 0), *older;
	unsigned kept = 0;
	for (; build; build = older) {
		older = build == t->builds ? NULL : build->prev;
		if (!template_build_has_ended(build) || build->job || has_tag(build) ||
			build_in_use(build))
			continue;
		if (build->status != BUILD_READY && kept++ < BUILDS_REMEMBERED)
			continue;
		store_delete_build(t->catalogue->box->store, build->id, NULL, NULL);
		build_detach(build);
	}
}

void builds_prune(struct catalogue *c)
{
	struct template *t;
	DL_FOREACH (c->order, t)
		template_build_prune(t);
}

void build_discard(struct build *build)
{
	struct template *t = build->template;
	struct store *store = build->catalogue->box->store;
	store_delete_build(store, build->id, NULL, NULL);
	build_detach(build);
	if (!t->builds) {
		store_delete_template(store, t->id, NULL, NULL);
		template_forget(t);
	}
}

struct build_use {
	const char *build;
	bool found;
};

static void snapshot_may_use(void *arg, const char *build, const char *root)
{
	struct build_use *use = arg;
	(void)root;
	use->found |= strcmp(build, use->build) == 0;
}

bool build_in_use(const struct build *build)
{
	const struct sandbox *s;
	DL_FOREACH (build->catalogue->box->sandboxes.order, s)
		if (strcmp(s->build, build->id) == 0 && !s->ending.doomed)
			return true;
	struct build_use use = {build->id, false};
	build->catalogue->box->hooks->each_snapshot(build->catalogue->box, snapshot_may_use, &use);
	return use.found;
}

void build_detach(struct build *build)
{
	HASH_DELETE(by_id, build->catalogue->builds, build);
	DL_DELETE(build->template->builds, build);
	build->template = NULL;
	if (build->job)
		build_job_cancel(build->job);
	else
		free_if_unused(build);
}
