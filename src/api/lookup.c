#include "api/lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define WAIT_MAX_MS   (10 * 60 * 1000)
#define LIMIT_DEFAULT 50
#define LIMIT_MAX     500

static void respond_not_found(struct http_request *req)
{
	struct error e;
	error_set(&e, ERROR_NOT_FOUND, "there is no such %s",
		http_param(req, "process") ? "process"
		: http_param(req, "job")   ? "job"
					   : "execution");
	http_respond_error(req, &e);
}

static bool is_fitting(const struct http_request *req, const struct execution *x)
{
	struct execution_view view;
	execution_view(x, &view);
	return !http_param(req, "job") || view.kind == EXECUTION_JOB;
}

/* ---- in memory ---- */

static struct execution *find_in_sandbox(const struct sandbox *s, const char *text)
{
	size_t len = strlen(text);
	if (len < 10 && len > 0 && strspn(text, "0123456789") == len)
		return execution_find_pid(s, (int32_t)strtol(text, NULL, 10));
	return execution_find_name(s, text);
}

static bool is_of_sandbox(const struct execution *x, const char *sandbox_id)
{
	struct execution_view view;
	execution_view(x, &view);
	return strcmp(view.sandbox_id, sandbox_id) == 0;
}

static struct execution *find_live(const struct http_request *req, const char *of_sandbox)
{
	const char *id = http_param(req, "id");
	if (!of_sandbox)
		return execution_find(api_box(req), api_tenant(req), id);
	struct execution *x = execution_find(api_box(req), api_tenant(req), of_sandbox);
	struct sandbox *s = sandbox_find(api_box(req), api_tenant(req), id);
	if (!x && s)
		x = find_in_sandbox(s, of_sandbox);
	return x && is_of_sandbox(x, id) && is_fitting(req, x) ? x : NULL;
}

/* ---- from the store ---- */

struct loading {
	struct http_request *req; /* NULL once the client has gone */
	api_found_fn *found;
};

static void load_aborted(void *arg)
{
	((struct loading *)arg)->req = NULL;
}

static void loaded(void *arg, struct execution *x)
{
	struct loading *l = arg;
	struct http_request *req = l->req;
	api_found_fn *found = l->found;
	free(l);
	if (!req)
		return;
	http_on_abort(req, NULL, NULL);
	if (x && is_fitting(req, x))
		found(req, x);
	else
		respond_not_found(req);
}

void api_find_execution(struct http_request *req, api_found_fn *found)
{
	const char *process = http_param(req, "process");
	const char *of_sandbox = process ? process : http_param(req, "job");
	const char *id = http_param(req, "id");
	struct execution *x = find_live(req, of_sandbox);
	if (x) {
		found(req, x);
		return;
	}
	struct loading *l = calloc(1, sizeof *l);
	if (!l)
		abort();
	*l = (struct loading){req, found};
	http_on_abort(req, load_aborted, l);
	execution_load(api_box(req), api_tenant(req), of_sandbox ? id : NULL,
		of_sandbox ? of_sandbox : id, loaded, l);
}

bool api_refuse_ended(struct http_request *req, const struct execution *x)
{
	struct error e;
	if (!execution_has_ended(x))
		return false;
	error_set(&e, ERROR_NOT_RUNNING, "the process has ended");
	http_respond_error(req, &e);
	return true;
}

/* ---- waiting ---- */

struct waiting {
	struct http_request *req;
	struct execution *execution;
	struct execution_watcher watcher;
	uv_timer_t timer;
	api_found_fn *then;
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

static void wait_over(uv_timer_t *timer)
{
	struct waiting *w = timer->data;
	http_on_abort(w->req, NULL, NULL);
	w->then(w->req, w->execution);
	waiting_end(w);
}

static void wait_changed(void *arg)
{
	struct waiting *w = arg;
	if (execution_has_ended(w->execution))
		wait_over(&w->timer);
}

static void wait_aborted(void *arg)
{
	waiting_end(arg);
}

void api_wait_for_end(struct http_request *req, struct execution *x, int64_t ms, api_found_fn *then)
{
	if (ms == 0 || execution_has_ended(x)) {
		then(req, x);
		return;
	}
	struct waiting *w = calloc(1, sizeof *w);
	if (!w)
		abort();
	*w = (struct waiting){.req = req, .execution = x, .then = then};
	w->watcher = (struct execution_watcher){.changed = wait_changed, .arg = w};
	uv_timer_init(((struct api *)http_ctx(req))->loop, &w->timer);
	w->timer.data = w;
	execution_watch(x, &w->watcher);
	http_on_abort(req, wait_aborted, w);
	uv_timer_start(&w->timer, wait_over, (uint64_t)ms, 0);
}

int api_parse_wait(const struct http_request *req, int64_t *ms, struct error *e)
{
	const char *text = http_query(req, "wait");
	*ms = 0;
	if (text && (units_parse_duration_ms(text, ms) < 0 || *ms > WAIT_MAX_MS))
		return error_set_field(e, ERROR_INVALID_FIELD, "wait",
			"\"wait\" must be a duration of at most 10m, such as \"30s\"");
	return 0;
}

/* ---- pages ---- */

static int parse_limit(const char *text, int64_t *ret, struct error *e)
{
	char *end;
	*ret = LIMIT_DEFAULT;
	if (!text)
		return 0;
	long value = strtol(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || value < 1 || value > LIMIT_MAX)
		return error_set_field(e, ERROR_INVALID_FIELD, "limit",
			"\"limit\" must be a number from 1 to %d", LIMIT_MAX);
	*ret = value;
	return 0;
}

int api_parse_page(const struct http_request *req, struct api_page *ret, struct error *e)
{
	char *end;
	const char *text = http_query(req, "cursor");
	*ret = (struct api_page){0};
	if (parse_limit(http_query(req, "limit"), &ret->limit, e) < 0)
		return -1;
	if (!text)
		return 0;
	ret->before_ms = strtoll(text, &end, 10);
	if (*text < '1' || *text > '9' || *end != '-' || !id_is_valid(end + 1))
		return error_set_field(e, ERROR_INVALID_FIELD, "cursor",
			"\"cursor\" must be what an earlier answer gave as nextCursor");
	memcpy(ret->before_id, end + 1, ID_SIZE);
	return 0;
}

void api_put_cursor(struct json_writer *w, int64_t ms, const char *id)
{
	char cursor[64];
	snprintf(cursor, sizeof cursor, "%lld-%s", (long long)ms, id);
	json_put_string(w, "nextCursor", cursor);
}
