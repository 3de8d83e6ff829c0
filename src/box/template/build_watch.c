/* Tells those who watch a build when its status or log changes. */
#include "box/template/catalogue.h"

#include <utlist.h>

void build_watch(struct build *build, struct build_watcher *w)
{
	DL_APPEND(build->watchers, w);
}

static void ignore_change(void *arg)
{
	(void)arg;
}

void build_hold(struct build *build, struct build_watcher *w)
{
	*w = (struct build_watcher){.changed = ignore_change};
	build_watch(build, w);
}

void build_changed(struct build *build)
{
	struct build_watcher *w, *next;
	DL_FOREACH_SAFE (build->watchers, w, next)
		w->changed(w->arg);
}
