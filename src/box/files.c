/* Files written into a sandbox: one of init's builtins per file, the content as its stdin. */
#include "box/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct writing {
	struct sandbox *sandbox;
	struct execution *execution;
	struct execution_watcher watcher;
	char *user, *cwd;
	struct {
		char *path, *content;
		size_t len;
		unsigned mode;
	} * files;
	size_t count, current;
	uv_async_t start; /* so that nothing is called back before the caller has returned */
	void (*done)(void *arg, const struct error *e);
	void *arg;
};

static void write_next(struct writing *w);

static void writing_free(uv_handle_t *handle)
{
	struct writing *w = handle->data;
	for (size_t i = 0; i < w->count; i++) {
		free(w->files[i].path);
		free(w->files[i].content);
	}
	free(w->files);
	free(w->user);
	free(w->cwd);
	free(w);
}

static void writing_end(struct writing *w, const struct error *e)
{
	w->done(w->arg, e);
	uv_close((uv_handle_t *)&w->start, writing_free);
}

/* The builtin's exit status is an errno. */
static void file_changed(void *arg)
{
	struct writing *w = arg;
	struct execution *x = w->execution;
	const char *path = w->files[w->current].path;
	struct error e = {0};
	const struct error *refusal = execution_refusal(x);
	if (!refusal && !execution_has_ended(x))
		return;
	if (refusal) {
		e = *refusal;
	} else if (x->status != EXECUTION_COMPLETED) {
		error_set(&e, ERROR_INTERNAL, "writing %s was interrupted", path);
	} else if (x->exit.code == ENXIO) {
		error_set(&e, ERROR_NOT_A_REGULAR_FILE, "cannot write %s: it is not a regular file",
			path);
	} else if (x->exit.code != 0) {
		error_set_errno(&e, x->exit.code, "cannot write %s", path);
	}
	if (e.code != ERROR_NONE && !refusal) {
		snprintf(e.field, sizeof e.field, "files[%zu]", w->current);
	}
	execution_unwatch(x, &w->watcher);
	w->execution = NULL;
	w->current++;
	if (e.code != ERROR_NONE)
		writing_end(w, &e);
	else
		write_next(w);
}

static void write_next(struct writing *w)
{
	struct error e = {0};
	char mode[16];
	if (w->current == w->count) {
		writing_end(w, NULL);
		return;
	}
	snprintf(mode, sizeof mode, "%o", w->files[w->current].mode);
	const char *argv[] = {"write", w->files[w->current].path, mode, NULL};
	struct execution_spec spec = {
		.argv = argv,
		.user = w->user,
		.cwd = w->cwd,
		.input = w->files[w->current].content,
		.input_len = w->files[w->current].len,
	};
	if (execution_start_internal(w->sandbox, &spec, true, &w->execution, &e) < 0) {
		writing_end(w, &e);
		return;
	}
	execution_watch(w->execution, &w->watcher);
}

static void start_writing(uv_async_t *async)
{
	write_next(async->data);
}

void files_write(struct sandbox *s, const struct files_owner *owner, const struct file_spec *files,
	size_t count, void (*done)(void *arg, const struct error *e), void *arg)
{
	struct writing *w = calloc(1, sizeof *w);
	if (!w || !(w->files = calloc(count + 1, sizeof *w->files)))
		abort();
	w->sandbox = s;
	w->user = owner->user ? strdup(owner->user) : NULL;
	w->cwd = owner->cwd ? strdup(owner->cwd) : NULL;
	w->count = count;
	for (size_t i = 0; i < count; i++) {
		w->files[i].path = strdup(files[i].path);
		w->files[i].content = malloc(files[i].len + 1);
		if (!w->files[i].path || !w->files[i].content)
			abort();
		memcpy(w->files[i].content, files[i].content, files[i].len);
		w->files[i].len = files[i].len;
		w->files[i].mode = files[i].mode;
	}
	w->watcher = (struct execution_watcher){.changed = file_changed, .arg = w};
	w->done = done;
	w->arg = arg;
	uv_async_init(s->box->loop, &w->start, start_writing);
	w->start.data = w;
	uv_async_send(&w->start);
}
