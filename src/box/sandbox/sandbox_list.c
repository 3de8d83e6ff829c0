/*
 * The table of sandboxes, by id, and their list, by time and id: that is what a cursor names. New
 * ones nearly always belong at its end.
 */
#include <string.h>
#include <utlist.h>

#include "box/sandbox/object.h"

static bool sandbox_list_is_after(const struct sandbox *a, int64_t ms, const char *id)
{
	return a->created_ms > ms || (a->created_ms == ms && strcmp(a->id, id) > 0);
}

void sandbox_add(struct sandbox *s)
{
	struct sandbox *at = s->box->order ? s->box->order->prev : NULL; /* the last */
	HASH_ADD(by_id, s->box->sandboxes, id, ID_LEN, s);
	while (at && sandbox_list_is_after(at, s->created_ms, s->id))
		at = at == s->box->order ? NULL : at->prev;
	if (at)
		DL_APPEND_ELEM(s->box->order, at, s);
	else
		DL_PREPEND(s->box->order, s);
	s->listed = true;
	s->box->counters.sandboxes++;
}

void sandbox_remove(struct sandbox *s)
{
	HASH_DELETE(by_id, s->box->sandboxes, s);
	DL_DELETE(s->box->order, s);
	s->listed = false;
	s->box->counters.sandboxes--;
}

/* ---- one ---- */

struct sandbox *sandbox_find_any(struct box *b, const char *id)
{
	struct sandbox *s = NULL;
	if (id_is_valid(id))
		HASH_FIND(by_id, b->sandboxes, id, ID_LEN, s);
	return s;
}

struct sandbox *sandbox_find(struct box *b, const char *tenant, const char *id)
{
	struct sandbox *s = sandbox_find_any(b, id);
	return s && strcmp(s->tenant, tenant) == 0 ? s : NULL;
}

struct sandbox *sandbox_find_named(struct box *b, const char *tenant, const char *name)
{
	struct sandbox *s;
	DL_FOREACH (b->order, s)
		if (strcmp(s->tenant, tenant) == 0 && strcmp(s->name, name) == 0)
			return s;
	return NULL;
}

struct sandbox *sandbox_search(struct box *b, bool (*matches)(void *arg, const char *id), void *arg)
{
	struct sandbox *s = b->order;
	while (s && !matches(arg, s->id))
		s = s->next;
	return s;
}

/* ---- those of one tenant ---- */

static struct sandbox *of_same_tenant(struct sandbox *s, const char *tenant)
{
	while (s && strcmp(s->tenant, tenant) != 0)
		s = s->next;
	return s;
}

struct sandbox *sandbox_first(
	struct box *b, const char *tenant, int64_t after_ms, const char *after_id)
{
	struct sandbox *s = b->order;
	while (s && !sandbox_list_is_after(s, after_ms, after_id))
		s = s->next;
	return of_same_tenant(s, tenant);
}

struct sandbox *sandbox_next(const struct sandbox *s)
{
	return of_same_tenant(s->next, s->tenant);
}

/* The first in the list has the last as its predecessor. */
static struct sandbox *sandbox_list_before(const struct sandbox *s)
{
	return s == s->box->order ? NULL : s->prev;
}

struct sandbox *sandbox_last(
	struct box *b, const char *tenant, int64_t before_ms, const char *before_id)
{
	struct sandbox *s = b->order ? b->order->prev : NULL;
	while (s && (strcmp(s->tenant, tenant) != 0 || s->created_ms > before_ms ||
			    (s->created_ms == before_ms && strcmp(s->id, before_id) >= 0)))
		s = sandbox_list_before(s);
	return s;
}

struct sandbox *sandbox_previous(const struct sandbox *s)
{
	struct sandbox *found = sandbox_list_before(s);
	while (found && strcmp(found->tenant, s->tenant) != 0)
		found = sandbox_list_before(found);
	return found;
}
