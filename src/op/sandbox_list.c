/*
 * Lists of sandboxes: those that live from memory, those that have ended from the store.
 *
 * What lives is walked from where the page before has ended, unless the list is sorted otherwise
 * than by creation or counted: then all that match are collected, a few hundred at most.
 *
 * A list by creation is told at the caller's pace: what it cannot take now is not held, but looked
 * at again, from the place of the last one that was told.
 */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "op/life.h"
#include "op/op_core.h"

/* Rows that the store is asked for at once: each may have 64 KiB of metadata. */
#define SLICE 64

#define STATUSES_ENDED (1u << SANDBOX_TERMINATED | 1u << SANDBOX_DELETED)

struct list_op {
	struct op op;
	struct op_list_sandboxes request; /* what it points at: until it is over */
	int64_t left;                     /* on the page */
	int64_t total;
	bool more; /* than the page has */
	/* Of a list that is announced, its last one; "": it is empty. */
	bool announced;
	int64_t end_ms;
	char end_id[ID_SIZE];
	/* For ended sandboxes, in the store's slice: */
	unsigned asked, seen;
	bool skipped; /* some of them were not told */
};

/* ---- which ---- */

static bool list_is_any(const char *wanted, const char *text)
{
	return !wanted || !wanted[0] || strcmp(wanted, text) == 0;
}

static bool list_has_pair(const cJSON *metadata, const struct op_pair *pair)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(metadata, pair->key);
	if (!item)
		return false;
	if (cJSON_IsString(item))
		return strcmp(item->valuestring, pair->value) == 0;
	autofree char *text = cJSON_PrintUnformatted(item);
	return text && strcmp(text, pair->value) == 0;
}

static bool list_matches_metadata(const struct op_list_sandboxes *q, const char *json)
{
	bool matches = true;
	cJSON *metadata = q->metadata_count ? cJSON_Parse(json) : NULL;
	for (size_t i = 0; matches && i < q->metadata_count; i++)
		matches = list_has_pair(metadata, &q->metadata[i]);
	cJSON_Delete(metadata);
	return matches;
}

static bool list_matches(const struct op_list_sandboxes *q, const struct sandbox_view *view)
{
	enum sandbox_status status = q->apparent ? sandbox_apparent_status(view) : view->status;
	return (!q->statuses || (q->statuses >> status) & 1) &&
	       (!q->living_only || sandbox_lives(view)) && list_is_any(q->name, view->name) &&
	       list_is_any(q->project, view->project) && list_is_any(q->snapshot, view->snapshot) &&
	       list_is_any(q->template_name, view->template_name) &&
	       (q->ephemeral < 0 || q->ephemeral == view->ephemeral) &&
	       view->created_ms >= q->made_from_ms && list_matches_metadata(q, view->metadata);
}

/* ---- in which order ---- */

static int compare_numbers(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int compare_creation(const struct sandbox_view *a, const struct sandbox_view *b)
{
	int r = compare_numbers(a->created_ms, b->created_ms);
	return r ? r : strcmp(a->id, b->id);
}

static int compare_activity(const struct sandbox_view *a, const struct sandbox_view *b)
{
	return compare_numbers(a->last_active_ms, b->last_active_ms);
}

static int compare_name(const struct sandbox_view *a, const struct sandbox_view *b)
{
	return strcmp(a->name, b->name);
}

static int compare_status(const struct sandbox_view *a, const struct sandbox_view *b)
{
	return strcmp(sandbox_status_name(sandbox_apparent_status(a)),
		sandbox_status_name(sandbox_apparent_status(b)));
}

static int compare_ephemeral(const struct sandbox_view *a, const struct sandbox_view *b)
{
	return compare_numbers(a->ephemeral, b->ephemeral);
}

static int compare_executions(const struct sandbox_view *a, const struct sandbox_view *b)
{
	return compare_numbers(a->executions, b->executions);
}

/* Ties are ordered by creation. */
static int compare_views(const void *a, const void *b, void *order)
{
	static int (*const orders[])(const struct sandbox_view *a, const struct sandbox_view *b) = {
		[SANDBOX_ORDER_CREATION] = compare_creation,
		[SANDBOX_ORDER_ACTIVITY] = compare_activity,
		[SANDBOX_ORDER_NAME] = compare_name,
		[SANDBOX_ORDER_STATUS] = compare_status,
		[SANDBOX_ORDER_EPHEMERAL] = compare_ephemeral,
		[SANDBOX_ORDER_EXECUTIONS] = compare_executions,
	};
	int r = orders[*(const enum sandbox_order *)order](a, b);
	return r ? r : compare_creation(a, b);
}

/* ---- those that live ---- */

static int64_t list_count_awake(const struct list_op *l)
{
	struct sandbox_view view;
	int64_t count = 0;
	struct sandbox *s = sandbox_first(l->op.ops->box, l->op.tenant, INT64_MIN, "");
	for (; s; s = sandbox_next(s)) {
		sandbox_view(s, &view);
		count += sandbox_lives(&view) && !sandbox_sleeps(&view);
	}
	return count;
}

static void list_end(struct list_op *l)
{
	op_done(&l->op, &(struct op_event){
				.kind = OP_DONE,
				.total = l->total,
				.more = l->more,
			});
}

/* False: the operation is gone. */
static bool op_sandbox_list_tell(struct list_op *l, const struct sandbox_view *view)
{
	return op_emit(&l->op, &(struct op_event){.kind = OP_ROW, .sandbox = view});
}

/* False: the page is full, and this one is more; or the operation is gone. */
static bool list_add(struct list_op *l, const struct sandbox_view *view, bool *gone)
{
	*gone = false;
	if (!list_matches(&l->request, view))
		return true;
	l->more = l->left == 0;
	if (l->more)
		return false;
	l->left--;
	*gone = !op_sandbox_list_tell(l, view);
	return !*gone;
}

static struct sandbox *list_first(const struct list_op *l)
{
	const struct op_list_sandboxes *q = &l->request;
	struct box *b = l->op.ops->box;
	const char *tenant = l->op.tenant;
	if (q->backwards)
		return sandbox_last(
			b, tenant, q->place_id[0] ? q->place_ms : INT64_MAX, q->place_id);
	return sandbox_first(b, tenant, q->place_id[0] ? q->place_ms : INT64_MIN, q->place_id);
}

static void list_note_place(struct list_op *l, const struct sandbox_view *view)
{
	l->request.place_ms = view->created_ms;
	memcpy(l->request.place_id, view->id, ID_SIZE);
}

static struct sandbox *list_following(const struct list_op *l, const struct sandbox *s)
{
	return l->request.backwards ? sandbox_previous(s) : sandbox_next(s);
}

/* Looks ahead to the end of the page. False: the operation is gone. */
static bool list_announce(struct list_op *l)
{
	struct sandbox_view view;
	int64_t left = l->left;
	bool more = false;
	for (struct sandbox *s = list_first(l); s && !more; s = list_following(l, s)) {
		sandbox_view(s, &view);
		if (!list_matches(&l->request, &view))
			continue;
		more = left-- == 0;
		if (more)
			break;
		l->end_ms = view.created_ms;
		memcpy(l->end_id, view.id, ID_SIZE);
	}
	l->announced = true;
	return op_emit(&l->op, &(struct op_event){
				       .kind = OP_ROW,
				       .awake = list_count_awake(l),
				       .more = more,
				       .end_ms = l->end_ms,
				       .end_id = l->end_id,
			       });
}

static bool list_is_behind_end(const struct list_op *l, const struct sandbox_view *view)
{
	if (!l->announced)
		return false;
	int r = compare_numbers(view->created_ms, l->end_ms);
	if (r == 0)
		r = strcmp(view->id, l->end_id);
	return !l->end_id[0] || (l->request.backwards ? r < 0 : r > 0);
}

static void list_walk(struct list_op *l)
{
	struct sandbox_view view;
	bool gone;
	if (l->op.paused || (l->request.announces && !l->announced && !list_announce(l)))
		return;
	for (struct sandbox *s = list_first(l); s; s = list_following(l, s)) {
		sandbox_view(s, &view);
		if (list_is_behind_end(l, &view))
			break;
		bool told = list_add(l, &view, &gone);
		if (gone)
			return;
		if (!told)
			break;
		list_note_place(l, &view);
		if (l->op.paused)
			return;
	}
	list_end(l);
}

static struct sandbox_view *list_collect(struct list_op *l, size_t *count)
{
	size_t room = 0;
	struct sandbox_view *views = NULL, view;
	struct sandbox *s = sandbox_first(l->op.ops->box, l->op.tenant, INT64_MIN, "");
	*count = 0;
	for (; s; s = sandbox_next(s)) {
		sandbox_view(s, &view);
		if (!list_matches(&l->request, &view))
			continue;
		if (*count == room) {
			room = room ? room * 2 : 64;
			views = mem_resize(views, room, sizeof *views);
		}
		views[(*count)++] = view;
	}
	if (*count)
		qsort_r(views, *count, sizeof *views, compare_views, &l->request.order);
	return views;
}

static void list_sorted(struct list_op *l)
{
	size_t count;
	bool backwards = l->request.backwards, stays = true;
	autofree struct sandbox_view *views = list_collect(l, &count);
	size_t from = l->request.offset < (int64_t)count ? (size_t)l->request.offset : count;
	l->total = (int64_t)count;
	l->more = l->left < (int64_t)(count - from);
	for (size_t i = from; stays && i < count && l->left > 0; i++, l->left--)
		stays = op_sandbox_list_tell(l, &views[backwards ? count - 1 - i : i]);
	if (stays)
		list_end(l);
}

/* ---- those that have ended ---- */

static void list_ask_store(struct list_op *l);

/* The store cannot filter by metadata, so that many slices may make one page. */
static void list_ended_told(
	void *arg, const struct sandbox_view *view, int64_t total, const struct error *e)
{
	struct list_op *l = arg;
	struct op_list_sandboxes *q = &l->request;
	bool gone;
	if (view) {
		l->seen++;
		l->skipped |= l->op.paused && !q->counts;
		if (l->op.gone || l->more || l->skipped)
			return;
		list_note_place(l, view);
		list_add(l, view, &gone);
		return;
	}
	if (!op_awaited(&l->op))
		return;
	l->total = total;
	bool may_be_more = l->skipped || l->seen == l->asked;
	if (e)
		op_fail(&l->op, OP_ERROR, e);
	else if (q->counts || l->more || !may_be_more)
		list_end(l);
	else if (!l->op.paused)
		list_ask_store(l);
}

static void list_ask_store(struct list_op *l)
{
	const struct op_list_sandboxes *q = &l->request;
	int64_t slice = l->left < SLICE ? l->left + 1 : SLICE;
	bool deleted = q->statuses == 1u << SANDBOX_DELETED;
	const struct sandbox_filter filter = {
		.tenant = l->op.tenant,
		.status = sandbox_status_name(deleted ? SANDBOX_DELETED : SANDBOX_TERMINATED),
		.name = q->name,
		.project = q->project,
		.snapshot = q->snapshot,
		.ephemeral = q->ephemeral,
		.after_ms = q->place_ms,
		.after_id = q->place_id[0] ? q->place_id : NULL,
		.order = q->order,
		.backwards = q->backwards,
		.counts = q->counts,
		.offset = q->offset,
		.limit = (unsigned)(q->counts ? q->limit : slice),
	};
	l->asked = filter.limit;
	l->seen = 0;
	l->skipped = false;
	op_await(&l->op);
	sandbox_list_ended(l->op.ops->box, &filter, list_ended_told, l);
}

/* ---- an operation ---- */

static void op_sandbox_list_resume(struct op *op)
{
	struct list_op *l = (struct list_op *)op;
	const struct op_list_sandboxes *q = &l->request;
	if (q->statuses & STATUSES_ENDED)
		list_ask_store(l);
	else if (q->counts || q->order != SANDBOX_ORDER_CREATION)
		list_sorted(l);
	else
		list_walk(l);
}

struct op *op_list_sandboxes(const struct op_call *call, const struct op_list_sandboxes *request)
{
	static const struct op_type type = {.name = "list", .resume = op_sandbox_list_resume};
	struct sandbox *s;
	struct list_op *l = (struct list_op *)op_new(call, &type, sizeof *l, &s);
	l->request = *request;
	l->left = request->limit ? request->limit : INT64_MAX;
	return &l->op;
}
