/*
 * POST /v1/templates/imports: a template from an archive, which is the body and is unpacked while
 * it comes. The answer is the build at its end; a client that leaves before that has changed its
 * mind.
 */
#include <stdlib.h>
#include <string.h>

#include "api/decode_build.h"
#include "api/templates.h"

#define IMPORT_LIMIT (UINT64_C(1) << 40) /* the builder's disk ends it before */

struct import_call {
	struct http_request *req; /* NULL once the client has gone */
	struct build *build;      /* NULL before it is made */
	struct build_watcher watcher;
	struct import_spec spec;
	struct scratch memory;
	bool body_ended, paused;
};

static void call_free(struct import_call *call)
{
	if (call->build)
		build_unwatch(call->build, &call->watcher);
	scratch_finish(&call->memory);
	free(call);
}

static bool is_over(const struct build *build)
{
	struct build_view v;
	build_view(build, &v);
	return v.status >= BUILD_READY;
}

/* ---- the body ---- */

/* Also after a pause: the client has gone, or did not send what it should. */
static void body_aborted(void *arg)
{
	struct import_call *call = arg;
	call->req = NULL;
	build_cancel(call->build);
	call_free(call);
}

static void body_data(void *arg, const char *data, size_t len)
{
	struct import_call *call = arg;
	build_import_data(call->build, data, len);
	if (build_import_room(call->build) > 0)
		return;
	call->paused = true;
	http_body_pause(call->req);
}

static void room(void *arg)
{
	struct import_call *call = arg;
	if (!call->paused)
		return;
	call->paused = false;
	http_body_resume(call->req);
}

static void client_left(void *arg)
{
	body_aborted(arg);
}

static void body_end(void *arg)
{
	struct import_call *call = arg;
	call->body_ended = true;
	http_on_abort(call->req, client_left, call);
	build_import_end(call->build);
}

/* ---- the end ---- */

static void respond(struct import_call *call)
{
	struct http_request *req = call->req;
	struct build *build = call->build;
	struct build_view v;
	struct error e;
	build_view(build, &v);
	if (v.status == BUILD_READY) {
		api_respond_build(req, 201, build);
	} else {
		error_set(&e, v.status == BUILD_CANCELLED ? ERROR_BUILD_FAILED : v.code, "%s",
			v.reason);
		http_respond_error(req, &e);
	}
	call_free(call);
}

static void build_has_changed(void *arg)
{
	struct import_call *call = arg;
	if (call->req && is_over(call->build))
		respond(call);
}

/* ---- the beginning ---- */

static void import_made(void *arg, struct build *build, const struct error *e)
{
	struct import_call *call = arg;
	struct error wrong;
	call->build = build;
	if (build) {
		call->watcher = (struct build_watcher){.changed = build_has_changed, .arg = call};
		build_watch(build, &call->watcher);
	}
	if (!call->req) {
		if (build)
			build_cancel(build);
		call_free(call);
		return;
	}
	if (build && build_import(build, &call->spec, room, call, &wrong) < 0)
		e = &wrong;
	if (e) {
		http_respond_error(call->req, e);
		if (build)
			build_cancel(build);
		call_free(call);
		return;
	}
	http_body_stream(
		call->req, &(struct http_body_sink){body_data, body_end, body_aborted, call});
}

static void made_aborted(void *arg)
{
	((struct import_call *)arg)->req = NULL;
}

static int parse_format(const char *text, enum import_format *ret, struct error *e)
{
	static const char *const names[] = {[IMPORT_AUTO] = "auto",
		[IMPORT_ROOT] = "root",
		[IMPORT_DOCKER] = "docker",
		[IMPORT_OCI] = "oci"};
	for (size_t i = 0; text && i < ARRAY_LEN(names); i++)
		if (strcmp(text, names[i]) == 0) {
			*ret = (enum import_format)i;
			return 0;
		}
	return !text ? 0
		     : error_set_field(e, ERROR_INVALID_FIELD, "format",
			       "\"format\" is auto, root, docker or oci");
}

/* Strings of the query live as long as the request, and are copied by the core. */
static int parse_query(
	struct http_request *req, struct import_call *call, struct build_new *what, struct error *e)
{
	static const char *const known[] = {
		"name", "description", "format", "ref", "digest", "origin"};
	const char *name, *value;
	for (size_t i = 0; http_query_at(req, i, &name, &value); i++) {
		bool is_known = false;
		for (size_t k = 0; k < ARRAY_LEN(known); k++)
			is_known |= strcmp(name, known[k]) == 0;
		if (!is_known || strlen(value) > 1024)
			return error_set_field(e,
				is_known ? ERROR_INVALID_FIELD : ERROR_UNKNOWN_FIELD, name,
				"there is no '%.64s', or it is too long", name);
	}
	const char *target = http_query(req, "name");
	if (!target)
		return error_set_field(e, ERROR_MISSING_FIELD, "name", "\"name\" is missing");
	what->description = http_query(req, "description");
	call->spec.ref = http_query(req, "ref");
	call->spec.digest = http_query(req, "digest");
	call->spec.origin = http_query(req, "origin");
	if (parse_format(http_query(req, "format"), &call->spec.format, e) < 0)
		return -1;
	return decode_template_name(target, &call->memory, what, e);
}

static void handle_import(struct http_request *req)
{
	struct error e = {0};
	struct build_new what = {.tenant = tenant_of(req)};
	struct import_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	if (parse_query(req, call, &what, &e) < 0 ||
		build_create(server_of(req)->box, &what, import_made, call, &e) < 0) {
		call_free(call);
		http_respond_error(req, &e);
	} else {
		http_on_abort(req, made_aborted, call);
	}
}

static const struct http_route import_routes[] = {
	{HTTP_POST, "/v1/templates/imports", handle_import, IMPORT_LIMIT, true},
};

const struct route_table import_table = ROUTE_TABLE(import_routes);
