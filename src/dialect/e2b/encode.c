#include "dialect/e2b/encode.h"

#include "dialect/e2b/access.h"

#define MIB           (1 << 20)
#define FAR_FUTURE_MS INT64_C(253402300799000) /* the end of the year 9999, for what has none */

enum e2b_state e2b_state_of(const struct sandbox_view *view)
{
	if (!sandbox_lives(view))
		return E2B_GONE;
	return sandbox_sleeps(view) ? E2B_PAUSED : E2B_RUNNING;
}

void e2b_put_sandbox(struct json_writer *w, const struct server *d, const struct sandbox_view *view)
{
	char token[AUTH_TOKEN_SIZE];
	e2b_token(d, view->id, token);
	json_begin_object(w);
	json_put_string(w, "sandboxID", view->id);
	json_put_string(w, "templateID", view->template_name);
	json_put_string(w, "alias", view->template_name);
	json_put_string(w, "clientID", "bunker");
	json_put_string(w, "envdVersion", E2B_ENVD_VERSION);
	json_put_string(w, "envdAccessToken", token);
	json_put_string(w, "domain", d->sandbox_domain);
	json_end_object(w);
}

/* One whose volume is gone meanwhile has its id. */
static void e2b_encode_put_volumes(struct json_writer *w, const struct sandbox_view *view)
{
	const struct warden_volume *volumes = view->volumes;
	if (!volumes || !volumes[0].id[0])
		return;
	json_key(w, "volumeMounts");
	json_begin_array(w);
	for (size_t i = 0; i < WARDEN_VOLUMES_MAX && volumes[i].id[0]; i++) {
		const char *name = view->volume_names[i];
		json_begin_object(w);
		json_put_string(w, "name", name ? name : volumes[i].id);
		json_put_string(w, "path", volumes[i].path);
		json_end_object(w);
	}
	json_end_array(w);
}

static void e2b_encode_put_fields(struct json_writer *w, const struct sandbox_view *view)
{
	json_put_string(w, "sandboxID", view->id);
	json_put_string(w, "templateID", view->template_name);
	json_put_string(w, "alias", view->template_name);
	json_put_string(w, "clientID", "bunker");
	json_put_time(w, "startedAt", view->created_ms);
	json_put_time(w, "endAt", view->lease_end_ms ? view->lease_end_ms : FAR_FUTURE_MS);
	json_put_int(w, "cpuCount", (view->resources.cpu + 999) / 1000);
	json_put_int(w, "memoryMB", view->resources.memory / MIB);
	json_put_int(w, "diskSizeMB", view->resources.disk / MIB);
	json_put_string(w, "state", e2b_state_of(view) == E2B_PAUSED ? "paused" : "running");
	json_put_string(w, "envdVersion", E2B_ENVD_VERSION);
	json_key(w, "metadata");
	json_raw(w, view->metadata);
	e2b_encode_put_volumes(w, view);
}

void e2b_put_listed(struct json_writer *w, const struct sandbox_view *view)
{
	json_begin_object(w);
	e2b_encode_put_fields(w, view);
	json_end_object(w);
}

void e2b_put_detail(struct json_writer *w, const struct server *d, const struct sandbox_view *view)
{
	char token[AUTH_TOKEN_SIZE];
	e2b_token(d, view->id, token);
	json_begin_object(w);
	e2b_encode_put_fields(w, view);
	json_put_string(w, "envdAccessToken", token);
	json_put_string(w, "domain", d->sandbox_domain);
	json_key(w, "lifecycle");
	json_begin_object(w);
	json_put_string(w, "onTimeout", view->on_lease == EXPIRY_DESTROY ? "kill" : "pause");
	json_put_bool(w, "autoResume", view->auto_resume);
	json_end_object(w);
	json_end_object(w);
}

static int e2b_encode_sandbox_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	e2b_put_sandbox(&w, server_of(a->req), event->sandbox);
	return 0;
}

const struct answer_form e2b_sandbox_form = {
	.type = E2B_JSON, .pace = ANSWER_WHOLE, .put = e2b_encode_sandbox_put, .fail = e2b_fail};
