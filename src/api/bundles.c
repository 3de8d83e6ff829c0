/* /v1/snapshots/{snapshot}/export and /v1/snapshots/import: snapshots as files. */
#include "box/core/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/encode.h"
#include "api/feed.h"
#include "api/intake.h"

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

/* "json", or "tar" and nothing. */
static int parse_format(struct http_request *req, bool *json, struct error *e)
{
	const char *format = http_query(req, "format");
	*json = format && strcmp(format, "json") == 0;
	if (format && !*json && strcmp(format, "tar") != 0)
		return error_set_field(
			e, ERROR_INVALID_FIELD, "format", "\"format\" is tar or json");
	return 0;
}

static void handle_export(struct http_request *req)
{
	struct error e;
	bool json;
	char disposition[64];
	struct snapshot_view view;
	struct snapshot *s =
		snapshot_find(server_of(req)->box, tenant_of(req), http_param(req, "snapshot"));
	if (!s) {
		error_set(&e, ERROR_NOT_FOUND, "there is no such snapshot");
		http_respond_error(req, &e);
		return;
	}
	if (parse_format(req, &json, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	if (json) {
		api_export_snapshot_json(req, s);
		return;
	}
	struct bundle_export *source;
	struct feed *feed = feed_new(sizeof *feed, req, "application/zstd", &export_source);
	if (bundle_export_begin(s, &feed_bundle_events, feed, &source, &e) < 0) {
		feed_end(feed, &e);
		return;
	}
	feed->source = source;
	snapshot_view(s, &view);
	snprintf(disposition, sizeof disposition, "attachment; filename=\"%s.tar.zst\"", view.id);
	http_add_header(req, "Content-Disposition", disposition);
}

/* ---- import ---- */

static size_t import_room(const void *import)
{
	return bundle_import_room(import);
}

static void import_write(void *import, const char *data, size_t len)
{
	bundle_import_write(import, data, len);
}

static void import_end(void *import)
{
	bundle_import_end(import);
}

static void import_cancel(void *import)
{
	bundle_import_cancel(import);
}

static const struct intake_taker taker = {import_room, import_write, import_end, import_cancel};

static void respond_imported(struct http_request *req, const struct snapshot *s)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct snapshot_view view;
	snapshot_view(s, &view);
	json_begin_object(&w);
	encode_snapshot(&w, &view);
	json_end_object(&w);
	api_respond_json(req, 201, &body);
}

static void import_done(void *arg, struct snapshot *s, const struct error *e)
{
	struct intake *in = arg;
	if (e)
		http_respond_error(in->req, e);
	else
		respond_imported(in->req, s);
	free(in);
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
	static const struct bundle_import_events events = {intake_room, import_done};
	struct snapshot_spec spec = {0};
	struct error e;
	struct bundle_import *import;
	struct intake *in = intake_new(req, &taker);
	if (parse_spec(req, &spec, &e) < 0 ||
		bundle_import_begin(
			server_of(req)->box, tenant_of(req), &spec, &events, in, &import, &e) < 0) {
		http_respond_error(req, &e);
		free(in);
		return;
	}
	intake_begin(in, import);
}

static const struct http_route bundle_routes[] = {
	{HTTP_GET, "/v1/snapshots/{snapshot}/export", handle_export, 0},
	{HTTP_POST, "/v1/snapshots/import", handle_import, IMPORT_MAX, .streams_body = true},
};

const struct route_table bundle_table = ROUTE_TABLE(bundle_routes);
