/*
 * What a sandbox used of the internet, by destination, as bunker-egress tells it (wire/egress.h).
 * It is kept in memory: a front that is started again has what egress still knows.
 */
#pragma once

#include "box/sandbox/part.h"
#include "box/sandbox/sandbox.h"
#include "model/destination.h"
#include "wire/egress.h"

extern const struct sandbox_part traffic_part;

struct traffic_row;

struct traffic_watcher {
	struct traffic_watcher *prev, *next;
	struct sandbox *sandbox; /* NULL: it has ended */
	void (*changed)(void *arg);
	void (*gone)(void *arg); /* the sandbox has ended; it is watched no more */
	void *arg;
};

/* The part of a sandbox. */
struct sandbox_traffic {
	struct traffic_row *by_key;
	struct traffic_row *list;  /* the one that was told last is first */
	struct traffic_row *other; /* stands for many; NULL: none yet; in the list */
	unsigned count;            /* without that */
	uint64_t version;          /* of the row that was told last */
	struct traffic_watcher *watchers;
};

/* Adds what was told. The host is printable. */
void traffic_take(struct sandbox *s, const struct egress_traffic *told);

/* The one that was told last, and the next; NULL: there is none. */
const struct traffic_row *traffic_first(const struct sandbox *s);
const struct traffic_row *traffic_next(const struct traffic_row *row);
/* The one that was told first of those after *version, which it sets; NULL: there is none. */
const struct traffic_row *traffic_after(const struct sandbox *s, uint64_t *version);
const struct destination_view *traffic_view(const struct traffic_row *row);

void traffic_watch(struct sandbox *s, struct traffic_watcher *w);
void traffic_unwatch(struct traffic_watcher *w);
