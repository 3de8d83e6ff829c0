/* /v1/snapshots/{snapshot}/export and /v1/snapshots/import: snapshots as files. */
#include "box/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/feed.h"

#define IMPORT_MAX (UINT64_C(1) << 40)

/* ---- export ---- */

static void export_pause(void *source)
{
	bundle_export_pause(source);
}

static void export_resume(void *source)
{
	bundle_export_resume(source);
}

static void export_cancel(void *source)
{
	bundle_export_cancel(source);
}

static const struct feed_source export_source = {export_pause, export_resume, export_cancel};

static void export_data(void *arg, const char *bytes, size_t len)
{
	struct feed *feed = arg;
	buf_append(&feed->out, bytes, len);
	feed_flush(feed);
}

static void export_done(void *arg, const struct error *e)
{
	feed_end(arg, e);
}

static void handle_export(struct http_request *req)
{
	static const struct bundle_export_events events = {export_data, export_done};
	struct error e;
	char disposition[64];
	struct snapshot_view view;
	struct snapshot *s =
		snapshot_find(api_box(req), api_tenant(req), http_param(req, "snapshot"));
	if (!s) {
		error_set(&e, ERROR_NOT_FOUND, "there is no such snapshot");
		http_respond_error(req, &e);
		return;
	}
	struct bundle_export *source;
	struct feed *feed = feed_new(sizeof *feed, req, "application/zstd", &export_source);
	if (bundle_export_begin(s, &events, feed, &source, &e) < 0) {
		feed_end(feed, &e);
		return;
	}
	feed->source = source;
	snapshot_view(s, &view);
	snprintf(disposition, sizeof disposition, "attachment; filename=\"%s.tar.zst\"", view.id);
	http_add_header(req, "Content-Disposition", disposition);
}

/* ---- import ---- */

struct import_call {
	struct http_request *req; /* NULL once it is answered or the client has gone */
	struct bundle_import *import;
	bool paused;
};

static void import_room(void *arg)
{
	struct import_call *call = arg;
	if (call->req && call->paused) {
		call->paused = false;
		http_body_resume(call->req);
	}
}

static void import_done(void *arg, struct snapshot *s, const struct error *e)
{
	struct import_call *call = arg;
	if (e)
		http_respond_error(call->req, e);
	else
		api_respond_snapshot(call->req, 201, s);
	free(call);
}

static void body_data(void *arg, const char *data, size_t len)
{
	struct import_call *call = arg;
	bundle_import_write(call->import, data, len);
	if (bundle_import_room(call->import) == 0 && !call->paused) {
		call->paused = true;
		http_body_pause(call->req);
	}
}

static void body_end(void *arg)
{
	struct import_call *call = arg;
	bundle_import_end(call->import);
}

static void body_aborted(void *arg)
{
	struct import_call *call = arg;
	bundle_import_cancel(call->import);
	free(call);
}

static int parse_spec(struct http_request *req, struct snapshot_spec *ret, struct error *e)
{
	const char *name, *value;
	for (size_t i = 0; http_query_at(req, i, &name, &value); i++) {
		if (strcmp(name, "name") == 0)
			ret->name = value;
		else if (strcmp(name, "tag") == 0)
			ret->tag = value;
		else if (strcmp(name, "description") == 0 && strlen(value) <= 1024)
			ret->description = value;
		else
			return error_set_field(e,
				strcmp(name, "description") == 0 ? ERROR_INVALID_FIELD
								 : ERROR_UNKNOWN_FIELD,
				name, "'%.64s' cannot be given here, or not like this", name);
	}
	return 0;
}

static void handle_import(struct http_request *req)
{
	static const struct bundle_import_events events = {import_room, import_done};
	struct snapshot_spec spec = {0};
	struct error e;
	struct import_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	if (parse_spec(req, &spec, &e) < 0 ||
		bundle_import_begin(api_box(req), api_tenant(req), &spec, &events, call,
			&call->import, &e) < 0) {
		http_respond_error(req, &e);
		free(call);
		return;
	}
	const struct http_body_sink sink = {body_data, body_end, body_aborted, call};
	http_on_abort(req, body_aborted, call);
	http_body_stream(req, &sink);
}

static const struct http_route bundle_routes[] = {
	{HTTP_GET, "/v1/snapshots/{snapshot}/export", handle_export, 0},
	{HTTP_POST, "/v1/snapshots/import", handle_import, IMPORT_MAX, .streams_body = true},
};

const struct api_table bundle_table = API_TABLE(bundle_routes);
