/*
 * Watches that are polled: events of a directory are collected until a caller takes them. They live
 * as long as their sandbox, its pauses included, or until they are removed.
 */
#pragma once

#include "box/files/files.h"
#include "box/sandbox/sandbox.h"

#define WATCHERS_MAX       16         /* of one sandbox */
#define WATCHER_EVENTS_MAX 4096       /* that wait to be taken */
#define WATCHER_BYTES_MAX  (1u << 20) /* of their names */

/* id is NULL and e says why when it failed. */
typedef void file_watcher_made_fn(void *arg, const char *id, const struct error *e);
int file_watcher_create(struct sandbox *s, const struct watch_spec *spec,
	file_watcher_made_fn *made, void *arg, struct error *e);

struct file_watcher;
struct file_watcher *file_watcher_find(const struct sandbox *s, const char *id);
/* Returns the spec that it was made with. */
const struct watch_spec *file_watcher_spec(const struct file_watcher *w);
/*
 * Gives what has happened since the last time to `each`. Refused when something was lost meanwhile
 * (once: it goes on from there), or when the directory cannot be watched any more.
 */
int file_watcher_take(struct file_watcher *w,
	void (*each)(void *arg, const struct file_notice *notice), void *arg, struct error *e);
void file_watcher_remove(struct file_watcher *w);

/* A caller that waits for a sync. Filled in by file_watcher_sync. */
struct file_watcher_waiter {
	struct file_watcher *watcher; /* NULL: it does not wait */
	bool asked;                   /* the SYNC that is out is for it, too */
	void (*done)(void *arg);
	void *arg;
	struct file_watcher_waiter *prev, *next;
};

/*
 * Calls `done`, once, when everything that happened before this call can be taken, or the watcher
 * has ended. Returns false if nothing can be asked, because it has ended or its sandbox sleeps. The
 * caller must not wait for ever: a sandbox that falls asleep answers when it wakes.
 */
bool file_watcher_sync(struct file_watcher *w, struct file_watcher_waiter *waiter,
	void (*done)(void *arg), void *arg);
/* `done` will not be called. */
void file_watcher_unsync(struct file_watcher_waiter *waiter);
