/*
 * The history of a sandbox: each step with its cause, kept in the store, in the order in which it
 * happened, for as long as the sandbox's row, which is longer than the sandbox.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/event.h"

struct box;
struct sandbox;

enum event_type {
	EVENT_CREATED,
	EVENT_STARTED, /* bootId */
	EVENT_PAUSED,
	EVENT_SUSPENDED,
	EVENT_RESUMED,
	EVENT_UPDATED,
	EVENT_DENIED, /* host, address, port: what it may not reach */
	EVENT_OOM,    /* executionId */
	EVENT_FAILED, /* reason */
	EVENT_CHECKPOINTED,
	EVENT_RESTORED,
	EVENT_SNAPSHOTTED,
	EVENT_FORKED,
	EVENT_TERMINATED,
	EVENT_DELETED,
	EVENT_TYPE_COUNT
};

enum event_cause {
	CAUSE_REQUEST, /* a request asked for it */
	CAUSE_CALL,    /* a call needed it */
	CAUSE_IDLE,
	CAUSE_LEASE,
	CAUSE_PAUSED,    /* it was paused for too long */
	CAUSE_COMPLETED, /* it was made for one command, which has ended */
	CAUSE_POLICY,    /* its network does not allow it */
	CAUSE_CRASH,     /* a process of the server or in the sandbox died */
	CAUSE_SHUTDOWN,  /* the server ended, and took its sandboxes along */
	CAUSE_COUNT
};

const char *event_type_name(enum event_type type);
const char *event_cause_name(enum event_cause cause);

struct event_detail {
	const char *name, *value; /* a NULL name ends the list */
};

/* Cheap: the row is committed with the next group, and no caller waits. details may be NULL. */
void event_add(struct sandbox *s, enum event_type type, enum event_cause cause,
	const struct event_detail *details);

/* Receives one page of events; events is NULL when the store could not be read. */
typedef void event_listed_fn(void *arg, const struct event_view *events, size_t count);
/*
 * Lists events behind `after` upwards, or backwards from below it (0: from the newest), of this
 * tenant only.
 */
void event_list(struct box *b, const char *tenant, const char *sandbox, uint64_t after,
	bool backwards, unsigned limit, event_listed_fn *listed, void *arg);

/* A watcher of new events of one sandbox, which may be gone, in the store. */
struct event_watcher {
	char sandbox[32];
	void (*changed)(void *arg);
	void *arg;
	struct event_watcher *prev, *next;
};

void event_watch(struct box *b, struct event_watcher *w);
void event_unwatch(struct box *b, struct event_watcher *w);
/* Returns whether events of this type are the last of their sandbox. */
bool event_is_last(const char *type);
