#include "handler/waiting.h"

#include <stdlib.h>
#include <string.h>

/* ---- which ---- */

struct loading {
	struct http_request *req; /* NULL once the client has gone */
	unsigned kinds;
	handler_execution_fn *found;
	void (*missing)(struct http_request *req);
};

static void load_aborted(void *arg)
{
	((struct loading *)arg)->req = NULL;
}

static bool is_of_kind(const struct execution *x, unsigned kinds)
{
	struct execution_view view;
	execution_view(x, &view);
	return kinds == 0 || (kinds >> view.kind) & 1;
}

static bool is_of_sandbox(const struct execution *x, const char *sandbox_id)
{
	struct execution_view view;
	execution_view(x, &view);
	return !sandbox_id || strcmp(view.sandbox_id, sandbox_id) == 0;
}

static void loaded(void *arg, struct execution *x)
{
	struct loading l = *(struct loading *)arg;
	free(arg);
	if (!l.req)
		return;
	http_on_abort(l.req, NULL, NULL);
	if (x && is_of_kind(x, l.kinds))
		l.found(l.req, x);
	else
		l.missing(l.req);
}

void handler_find_execution(struct http_request *req, const struct wanted_execution *q,
	handler_execution_fn *found, void (*missing)(struct http_request *req))
{
	struct execution *x = execution_find(q->box, q->tenant, q->id);
	if (x && is_of_sandbox(x, q->sandbox_id) && is_of_kind(x, q->kinds)) {
		found(req, x);
		return;
	}
	if (x) {
		missing(req);
		return;
	}
	struct loading *l = calloc(1, sizeof *l);
	if (!l)
		abort();
	*l = (struct loading){req, q->kinds, found, missing};
	http_on_abort(req, load_aborted, l);
	execution_load(q->box, q->tenant, q->sandbox_id, q->id, loaded, l);
}

/* ---- the end ---- */

struct waiting {
	struct http_request *req;
	struct execution *execution;
	struct execution_watcher watcher;
	uv_timer_t timer;
	handler_execution_fn *then;
};

static void waiting_free(uv_handle_t *handle)
{
	free(handle->data);
}

static void waiting_end(struct waiting *w)
{
	execution_unwatch(w->execution, &w->watcher);
	uv_close((uv_handle_t *)&w->timer, waiting_free);
}

static void waiting_over(uv_timer_t *timer)
{
	struct waiting *w = timer->data;
	http_on_abort(w->req, NULL, NULL);
	w->then(w->req, w->execution);
	waiting_end(w);
}

static void waiting_changed(void *arg)
{
	struct waiting *w = arg;
	if (execution_has_ended(w->execution))
		waiting_over(&w->timer);
}

static void waiting_aborted(void *arg)
{
	waiting_end(arg);
}

void handler_await_end(struct http_request *req, uv_loop_t *loop, struct execution *x, int64_t ms,
	handler_execution_fn *then)
{
	if (ms == 0 || execution_has_ended(x)) {
		then(req, x);
		return;
	}
	struct waiting *w = calloc(1, sizeof *w);
	if (!w)
		abort();
	*w = (struct waiting){.req = req, .execution = x, .then = then};
	w->watcher = (struct execution_watcher){.changed = waiting_changed, .arg = w};
	uv_timer_init(loop, &w->timer);
	w->timer.data = w;
	execution_watch(x, &w->watcher);
	http_on_abort(req, waiting_aborted, w);
	uv_timer_start(&w->timer, waiting_over, (uint64_t)ms, 0);
}
