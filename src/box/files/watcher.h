/*
 * Watches that are asked instead of telling: what happens in a directory is collected until
 * somebody takes it. They live as long as their sandbox, its pauses included, or until they are
 * removed.
 */
#pragma once

#include "box/files/files.h"
#include "box/sandbox/sandbox.h"

#define WATCHERS_MAX       16         /* of one sandbox */
#define WATCHER_EVENTS_MAX 4096       /* that wait to be taken */
#define WATCHER_BYTES_MAX  (1u << 20) /* of their names */

/* id is NULL and e says why when it failed. */
typedef void watcher_made_fn(void *arg, const char *id, const struct error *e);
int watcher_create(struct sandbox *s, const struct watch_spec *spec, watcher_made_fn *made,
	void *arg, struct error *e);

struct watcher;
struct watcher *watcher_find(const struct sandbox *s, const char *id);
/* What it was made with. */
const struct watch_spec *watcher_spec(const struct watcher *w);
/*
 * Gives what has happened since the last time to `each`. Refused when something was lost meanwhile
 * (once: it goes on from there), or when the directory cannot be watched any more.
 */
int watcher_take(struct watcher *w, void (*each)(void *arg, const struct file_notice *notice),
	void *arg, struct error *e);
void watcher_remove(struct watcher *w);
