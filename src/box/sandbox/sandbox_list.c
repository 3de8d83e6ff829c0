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
	struct sandbox *at =
		s->box->sandboxes.order ? s->box->sandboxes.order->prev : NULL; /* the last */
	HASH_ADD(by_id, s->box->sandboxes.by_id, id, ID_LEN, s);
	while (at && sandbox_list_is_after(at, s->created_ms, s->id))
		at = at == s->box->sandboxes.order ? NULL : at->prev;
	if (at)
		DL_APPEND_ELEM(s->box->sandboxes.order, at, s);
	else
		DL_PREPEND(s->box->sandboxes.order, s);
	s->listed = true;
	s->box->counters.sandboxes++;
}

void sandbox_remove(struct sandbox *s)
{
	HASH_DELETE(by_id, s->box->sandboxes.by_id, s);
	DL_DELETE(s->box->sandboxes.order, s);
	s->listed = false;
	s->box->counters.sandboxes--;
}

/* ---- one ---- */

struct sandbox *sandbox_find_any(struct box *b, const char *id)
{
	struct sandbox *s = NULL;
	if (id_is_valid(id))
		HASH_FIND(by_id, b->sandboxes.by_id, id, ID_LEN, s);
	return s;
}

/* A sandbox whose end was told remains only until its row is closed, and is not shown. */
static bool sandbox_list_shows(const struct sandbox *s, const char *tenant)
{
	return strcmp(s->tenant, tenant) == 0 && !s->ending.told;
}

struct sandbox *sandbox_find(struct box *b, const char *tenant, const char *id)
{
	struct sandbox *s = sandbox_find_any(b, id);
	return s && sandbox_list_shows(s, tenant) ? s : NULL;
}

struct sandbox *sandbox_find_named(struct box *b, const char *tenant, const char *name)
{
	struct sandbox *s;
	DL_FOREACH (b->sandboxes.order, s)
		if (strcmp(s->tenant, tenant) == 0 && strcmp(s->name, name) == 0)
			return s;
	return NULL;
}

struct sandbox *sandbox_search(
	struct box *b, bool (*matches)(void *arg, const char *id, const char *tenant), void *arg)
{
	struct sandbox *s = b->sandboxes.order;
	while (s && !matches(arg, s->id, s->tenant))
		s = s->next;
	return s;
}

/* ---- those of one tenant ---- */

static struct sandbox *of_same_tenant(struct sandbox *s, const char *tenant)
{
	while (s && !sandbox_list_shows(s, tenant))
		s = s->next;
	return s;
}

struct sandbox *sandbox_first(
	struct box *b, const char *tenant, int64_t after_ms, const char *after_id)
{
	struct sandbox *s = b->sandboxes.order;
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
	return s == s->box->sandboxes.order ? NULL : s->prev;
}

struct sandbox *sandbox_last(
	struct box *b, const char *tenant, int64_t before_ms, const char *before_id)
{
	struct sandbox *s = b->sandboxes.order ? b->sandboxes.order->prev : NULL;
	while (s && (!sandbox_list_shows(s, tenant) || s->created_ms > before_ms ||
			    (s->created_ms == before_ms && strcmp(s->id, before_id) >= 0)))
		s = sandbox_list_before(s);
	return s;
}

struct sandbox *sandbox_previous(const struct sandbox *s)
{
	struct sandbox *found = sandbox_list_before(s);
	while (found && !sandbox_list_shows(found, s->tenant))
		found = sandbox_list_before(found);
	return found;
}
