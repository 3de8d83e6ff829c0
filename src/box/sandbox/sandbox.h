/* Sandboxes: found, listed, destroyed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "model/sandbox.h"
#include "wire/keeper.h"

struct box;

/* Returns NULL for a sandbox that does not exist or belongs to another tenant. */
struct sandbox *sandbox_find(struct box *b, const char *tenant, const char *id);
/* In the order of creation, those of one tenant: the first, or the first behind a place in that
 * order. */
struct sandbox *sandbox_first(
	struct box *b, const char *tenant, int64_t after_ms, const char *after_id);
struct sandbox *sandbox_next(const struct sandbox *s);
/* Walks backwards: the last sandbox, or the last before a place. */
struct sandbox *sandbox_last(
	struct box *b, const char *tenant, int64_t before_ms, const char *before_id);
struct sandbox *sandbox_previous(const struct sandbox *s);
/* Finds a sandbox of any tenant, for callers that have shown a token of the sandbox itself. */
struct sandbox *sandbox_find_any(struct box *b, const char *id);
/* Returns the tenant's sandbox of this name. */
struct sandbox *sandbox_find_named(struct box *b, const char *tenant, const char *name);
/* Returns the first sandbox of any tenant that matches. */
struct sandbox *sandbox_search(
	struct box *b, bool (*matches)(void *arg, const char *id, const char *tenant), void *arg);
void sandbox_view(const struct sandbox *s, struct sandbox_view *out);

/*
 * A watcher of a sandbox's status. While it is called, the sandbox can be found and viewed. It may
 * unwatch itself, and must not do anything else to the sandbox.
 */
struct sandbox_watcher {
	char id[ID_SIZE];
	void (*changed)(void *arg, const struct sandbox *s);
	void *arg;
	struct sandbox_watcher *prev, *next;
};

void sandbox_watch(struct box *b, struct sandbox_watcher *w);
void sandbox_unwatch(struct box *b, struct sandbox_watcher *w);

/* e: NULL when it is done. */
typedef void sandbox_done_fn(void *arg, const struct error *e);

/*
 * With its memory every process stops where it is, and goes on there later; without, the processes
 * end and only the disk stays. Pausing what is paused works, and without memory ends what was kept.
 */
void sandbox_pause(struct sandbox *s, bool keep_memory, sandbox_done_fn *done, void *arg);
/* Without memory it is booted anew, on its disk. What is awake stays so. */
void sandbox_resume(struct sandbox *s, bool keep_memory, sandbox_done_fn *done, void *arg);

/* 0 and a call when it is stored; or a refusal, and nothing has changed. */
int sandbox_update(struct sandbox *s, const struct sandbox_change *change, sandbox_done_fn *done,
	void *arg, struct error *e);

/* The same; `done` comes when it is in force, for connections that are open, too. */
int sandbox_set_network(struct sandbox *s, const struct network_settings *network, bool is_wish,
	sandbox_done_fn *done, void *arg, struct error *e);

/* Tells a sandbox that has ended, as long as its row is kept; view is NULL when there is none. */
typedef void sandbox_loaded_fn(void *arg, const struct sandbox_view *view, const struct error *e);
void sandbox_load_ended(
	struct box *b, const char *tenant, const char *id, sandbox_loaded_fn *loaded, void *arg);

/* For each, and at the end with NULL and how many there are without offset and limit. */
typedef void sandbox_listed_fn(
	void *arg, const struct sandbox_view *view, int64_t total, const struct error *e);
void sandbox_list_ended(
	struct box *b, const struct sandbox_filter *filter, sandbox_listed_fn *listed, void *arg);

/* done may be NULL. A second call while the first is under way waits for the same end. */
void sandbox_destroy(struct sandbox *s, void (*done)(void *arg), void *arg);
