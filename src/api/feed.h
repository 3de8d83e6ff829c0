/*
 * An answer that is made while it is sent, at the pace of its reader: by a source that can be
 * paused. The owner has a struct feed in front of its own; it appends to `out`, says so, and says
 * how it ends. The feed frees the owner.
 */
#pragma once

#include "api/routes.h"
#include "box/core/bundle.h"

struct feed_source {
	void (*pause)(void *source);
	void (*resume)(void *source);
	void (*cancel)(void *source);
};

struct feed {
	struct http_request *req;
	const char *type; /* of the content */
	const struct feed_source *how;
	void *source; /* NULL: it is over */
	struct buf out;
	bool begun, ended, can_write;
	void (*free)(void *owner); /* what the owner has beside the feed; NULL: nothing */
};

/* Zeroed memory for an owner, as long as `size` says. */
void *feed_new(
	size_t size, struct http_request *req, const char *type, const struct feed_source *how);
/* For one that never began: the request is the caller's to answer. */
void feed_drop(struct feed *f);
/* There is more in `out`. */
void feed_flush(struct feed *f);
/* The source is over. Before the first byte an error is answered as one, later it cuts the answer.
 */
void feed_end(struct feed *f, const struct error *e);

/* Exports whose `arg` is a feed: what they say goes there as it is. */
extern const struct bundle_export_events feed_bundle_events;
