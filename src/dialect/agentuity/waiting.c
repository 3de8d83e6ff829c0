#include "dialect/agentuity/waiting.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define GRACE_MS  1000
#define RETURN_MS 60000 /* after a restart; the SDK tries for half of it */

/* ---- executions that nobody waits for ---- */

struct agentuity_guard {
	struct agentuity *dialect;
	struct execution *execution;
	struct execution_watcher watcher;
	uv_timer_t timer;
	struct agentuity_guard *prev, *next;
};

static void handle_free(uv_handle_t *handle)
{
	free(handle->data);
}

static void guard_end(struct agentuity_guard *g)
{
	DL_DELETE(g->dialect->guards, g);
	execution_unwatch(g->execution, &g->watcher);
	uv_close((uv_handle_t *)&g->timer, handle_free);
}

static void guard_due(uv_timer_t *timer)
{
	struct agentuity_guard *g = timer->data;
	if (execution_watched_by_none_but(g->execution, &g->watcher))
		execution_cancel(g->execution);
}

static void guard_alone(void *arg)
{
	struct agentuity_guard *g = arg;
	if (!g->dialect->server->ops->stopping)
		uv_timer_start(&g->timer, guard_due, GRACE_MS, 0);
}

static void guard_changed(void *arg)
{
	struct agentuity_guard *g = arg;
	if (execution_has_ended(g->execution))
		guard_end(g);
}

static void guard(struct agentuity *d, struct execution *x, uint64_t grace_ms)
{
	struct agentuity_guard *g = calloc(1, sizeof *g);
	if (!g)
		abort();
	g->dialect = d;
	g->execution = x;
	g->watcher = (struct execution_watcher){
		.changed = guard_changed, .alone = guard_alone, .arg = g};
	uv_timer_init(d->server->loop, &g->timer);
	g->timer.data = g;
	execution_watch(x, &g->watcher);
	DL_APPEND(d->guards, g);
	uv_timer_start(&g->timer, guard_due, grace_ms, 0);
}

void waiting_guard(struct agentuity *d, struct execution *x)
{
	if (!d->server->ops->stopping)
		guard(d, x, GRACE_MS);
}

static void guard_again(void *arg, struct execution *x)
{
	guard(arg, x, RETURN_MS);
}

void waiting_start(struct agentuity *d)
{
	execution_each_attended(d->server->box, guard_again, d);
}

void waiting_stop(struct agentuity *d)
{
	while (d->guards)
		guard_end(d->guards);
}

/* ---- the status of a sandbox ---- */

struct status_wait {
	struct http_request *req; /* NULL once the client has gone, while the store is asked */
	struct box *box;
	struct sandbox_watcher watcher;
	uv_timer_t timer;
	waiting_status_fn *over;
	waiting_viewed_fn *then;
};

static void status_wait_end(struct status_wait *w)
{
	sandbox_unwatch(w->box, &w->watcher);
	uv_close((uv_handle_t *)&w->timer, handle_free);
}

static void status_wait_answer(struct status_wait *w, const struct sandbox *s)
{
	struct http_request *req = w->req;
	waiting_viewed_fn *then = w->then;
	struct sandbox_view view;
	if (s)
		sandbox_view(s, &view);
	status_wait_end(w);
	http_on_abort(req, NULL, NULL);
	then(req, s ? &view : NULL);
}

static void status_changed(void *arg, const struct sandbox *s)
{
	struct status_wait *w = arg;
	struct sandbox_view view;
	sandbox_view(s, &view);
	/* What has ended by request does not become anything else. */
	if (w->over(w->req, &view) || view.status == SANDBOX_DELETED ||
		view.status == SANDBOX_TERMINATED)
		status_wait_answer(w, s);
}

static void status_wait_over(uv_timer_t *timer)
{
	struct status_wait *w = timer->data;
	status_wait_answer(w, sandbox_find(w->box, tenant_of(w->req), w->watcher.id));
}

static void status_wait_aborted(void *arg)
{
	status_wait_end(arg);
}

static void wait_for_status(struct http_request *req, const char *id, int64_t ms,
	waiting_status_fn *over, waiting_viewed_fn *then)
{
	struct status_wait *w = calloc(1, sizeof *w);
	if (!w)
		abort();
	*w = (struct status_wait){
		.req = req, .box = server_of(req)->box, .over = over, .then = then};
	w->watcher = (struct sandbox_watcher){.changed = status_changed, .arg = w};
	memcpy(w->watcher.id, id, ID_SIZE);
	uv_timer_init(server_of(req)->loop, &w->timer);
	w->timer.data = w;
	sandbox_watch(w->box, &w->watcher);
	http_on_abort(req, status_wait_aborted, w);
	uv_timer_start(&w->timer, status_wait_over, (uint64_t)ms, 0);
}

struct ended_call {
	struct http_request *req; /* NULL once the client has gone */
	waiting_viewed_fn *then;
};

static void ended_aborted(void *arg)
{
	((struct ended_call *)arg)->req = NULL;
}

static void ended_found(void *arg, const struct sandbox_view *view)
{
	struct ended_call call = *(struct ended_call *)arg;
	free(arg);
	if (!call.req)
		return;
	http_on_abort(call.req, NULL, NULL);
	call.then(call.req, view);
}

void waiting_for_sandbox(struct http_request *req, const char *id, int64_t ms,
	waiting_status_fn *over, waiting_viewed_fn *then)
{
	struct sandbox_view view;
	struct box *b = server_of(req)->box;
	struct sandbox *s = sandbox_find(b, tenant_of(req), id);
	if (!s) {
		struct ended_call *call = calloc(1, sizeof *call);
		if (!call)
			abort();
		*call = (struct ended_call){req, then};
		http_on_abort(req, ended_aborted, call);
		sandbox_load_ended(b, tenant_of(req), id, ended_found, call);
		return;
	}
	sandbox_view(s, &view);
	if (ms == 0 || over(req, &view))
		then(req, &view);
	else
		wait_for_status(req, id, ms, over, then);
}
