#include "box/sandbox/traffic.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/mem.h"
#include "box/sandbox/object.h"

struct traffic_row {
	struct traffic_row *prev, *next;
	UT_hash_handle by_key;
	struct destination_view view;
	uint64_t version; /* falls along the list */
	/* The key: both, without a gap. */
	uint16_t port;
	char host[];
};

_Static_assert(
	offsetof(struct traffic_row, host) == offsetof(struct traffic_row, port) + sizeof(uint16_t),
	"port and host are one key");

/* ---- rows ---- */

static struct traffic_row *traffic_add_row(struct sandbox_traffic *t, const char *host, size_t len)
{
	struct traffic_row *row = mem_new(sizeof *row + len + 1);
	memcpy(row->host, host, len);
	row->view.host = row->host;
	DL_PREPEND(t->list, row);
	return row;
}

static struct traffic_row *traffic_row_for_many(struct sandbox_traffic *t)
{
	if (!t->other) {
		t->other = traffic_add_row(t, "", 0);
		t->other->view.is_other = true;
	}
	return t->other;
}

static void traffic_row_used(struct sandbox_traffic *t, struct traffic_row *row)
{
	row->version = ++t->version;
	if (row == t->list)
		return;
	DL_DELETE(t->list, row);
	DL_PREPEND(t->list, row);
}

static void traffic_merge(struct sandbox_traffic *t, struct traffic_row *row)
{
	struct traffic_row *other = traffic_row_for_many(t);
	struct destination_view *to = &other->view;
	const struct destination_view *from = &row->view;
	to->connections += from->connections;
	to->failed += from->failed;
	to->refused += from->refused;
	to->bytes_in += from->bytes_in;
	to->bytes_out += from->bytes_out;
	if (to->used_ms < from->used_ms)
		to->used_ms = from->used_ms;
	traffic_row_used(t, other);
	HASH_DELETE(by_key, t->by_key, row);
	DL_DELETE(t->list, row);
	t->count--;
	free(row);
}

static struct traffic_row *traffic_row_of(
	struct sandbox_traffic *t, const char *host, uint16_t port)
{
	char key[sizeof port + sizeof((struct egress_traffic *)0)->host];
	struct traffic_row *row = NULL;
	size_t len = strlen(host);
	if (len == 0)
		return traffic_row_for_many(t);
	memcpy(key, &port, sizeof port);
	memcpy(key + sizeof port, host, len);
	HASH_FIND(by_key, t->by_key, key, sizeof port + len, row);
	if (row)
		return row;
	if (t->count >= DESTINATIONS_SHOWN_MAX) {
		row = t->list->prev;
		traffic_merge(t, row == t->other ? row->prev : row);
	}
	row = traffic_add_row(t, host, len);
	row->port = port;
	row->view.port = port;
	HASH_ADD_KEYPTR(by_key, t->by_key, &row->port, sizeof row->port + len, row);
	t->count++;
	return row;
}

static void traffic_tell_watchers(struct sandbox *s)
{
	struct traffic_watcher *w, *next;
	DL_FOREACH_SAFE (s->traffic.watchers, w, next)
		w->changed(w->arg);
}

void traffic_take(struct sandbox *s, const struct egress_traffic *told)
{
	struct traffic_row *row = traffic_row_of(&s->traffic, told->host, told->port);
	struct destination_view *v = &row->view;
	int64_t age_ms = told->age_ms < INT32_MAX ? (int64_t)told->age_ms : INT32_MAX;
	v->connections += told->connections;
	v->failed += told->failed;
	v->refused += told->refused;
	v->bytes_in += told->bytes_in;
	v->bytes_out += told->bytes_out;
	v->used_ms = clock_wall_ms() - age_ms;
	if (told->has_address && !v->is_other)
		address_format(&told->address, v->address);
	traffic_row_used(&s->traffic, row);
	traffic_tell_watchers(s);
}

/* ---- reading ---- */

const struct traffic_row *traffic_first(const struct sandbox *s)
{
	return s->traffic.list;
}

const struct traffic_row *traffic_next(const struct traffic_row *row)
{
	return row->next;
}

const struct traffic_row *traffic_after(const struct sandbox *s, uint64_t *version)
{
	const struct traffic_row *row, *found = NULL;
	DL_FOREACH (s->traffic.list, row) {
		if (row->version <= *version)
			break;
		found = row;
	}
	if (found)
		*version = found->version;
	return found;
}

const struct destination_view *traffic_view(const struct traffic_row *row)
{
	return &row->view;
}

/* ---- watching ---- */

void traffic_watch(struct sandbox *s, struct traffic_watcher *w)
{
	w->sandbox = s;
	DL_APPEND(s->traffic.watchers, w);
}

void traffic_unwatch(struct traffic_watcher *w)
{
	if (w->sandbox)
		DL_DELETE(w->sandbox->traffic.watchers, w);
	w->sandbox = NULL;
}

static void traffic_destroyed(struct sandbox *s)
{
	struct traffic_watcher *w, *next;
	DL_FOREACH_SAFE (s->traffic.watchers, w, next) {
		traffic_unwatch(w);
		w->gone(w->arg);
	}
}

static void traffic_free(struct sandbox *s)
{
	struct traffic_row *row, *next;
	traffic_destroyed(s);
	HASH_CLEAR(by_key, s->traffic.by_key);
	DL_FOREACH_SAFE (s->traffic.list, row, next)
		free(row);
	s->traffic = (struct sandbox_traffic){0};
}

const struct sandbox_part traffic_part = {.destroyed = traffic_destroyed, .free = traffic_free};
