/*
 * /v1/sandboxes/{id}/export and /v1/sandboxes/import: all that a sandbox has changed, and its
 * variables, as one JSON object, and a sandbox made of such a one.
 */
#include "box/core/portable.h"

#include <stdlib.h>
#include <string.h>

#include "api/decode.h"
#include "api/decode_parts.h"
#include "api/feed.h"
#include "api/intake.h"
#include "model/check.h"

#define IMPORT_MAX (UINT64_C(64) << 30)

/* ---- export ---- */

static void pause_source(void *source)
{
	portable_export_pause(source);
}

static void resume_source(void *source)
{
	portable_export_resume(source);
}

static void cancel_source(void *source)
{
	portable_export_cancel(source);
}

static const struct feed_source source = {pause_source, resume_source, cancel_source};

void api_export_snapshot_json(struct http_request *req, const struct snapshot *s)
{
	struct error e;
	struct feed *feed = feed_new(sizeof *feed, req, "application/json", &source);
	feed->source = portable_export_snapshot(s, &feed_bundle_events, feed, &e);
	if (!feed->source)
		feed_end(feed, &e);
}

static int parse_path(struct http_request *req, const char **ret, struct error *e)
{
	const char *name, *value;
	*ret = "/";
	for (size_t i = 0; http_query_at(req, i, &name, &value); i++) {
		if (strcmp(name, "path") != 0)
			return error_set_field(
				e, ERROR_UNKNOWN_FIELD, name, "'%.64s' cannot be given here", name);
		if (decode_path(value, "path", true, e) < 0)
			return -1;
		*ret = value;
	}
	return 0;
}

static void handle_export(struct http_request *req)
{
	struct error e;
	const char *path;
	struct sandbox *s = api_sandbox(req);
	if (!s)
		return;
	if (parse_path(req, &path, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	struct feed *feed = feed_new(sizeof *feed, req, "application/json", &source);
	feed->source = portable_export_sandbox(s, path, &feed_bundle_events, feed, &e);
	if (!feed->source)
		feed_end(feed, &e);
}

/* ---- import ---- */

static size_t import_room(const void *import)
{
	return portable_import_room(import);
}

static void import_write(void *import, const char *data, size_t len)
{
	portable_import_write(import, data, len);
}

static void import_end(void *import)
{
	portable_import_end(import);
}

static void import_cancel(void *import)
{
	portable_import_cancel(import);
}

static const struct intake_taker taker = {import_room, import_write, import_end, import_cancel};

static void imported(void *arg, struct sandbox *s, const struct error *e)
{
	struct intake *in = arg;
	if (e)
		http_respond_error(in->req, e);
	else
		api_respond_sandbox(in->req, 201, s);
	free(in);
}

static int check_length(const char *name, const char *value, size_t max, struct error *e)
{
	if (strlen(value) <= max)
		return 0;
	return error_set_field(e, ERROR_INVALID_FIELD, name,
		"\"%s\" must not be longer than %zu bytes", name, max);
}

static int parse_spec(struct http_request *req, struct sandbox_spec *ret, struct error *e)
{
	const struct {
		const char *name;
		const char **value;
		size_t max;
	} known[] = {{"name", &ret->name, 63}, {"template", &ret->template_name, 257},
		{"description", &ret->description, 1024}, {"project", &ret->project, 128}};
	const char *name, *value;
	for (size_t i = 0; http_query_at(req, i, &name, &value); i++) {
		size_t k = 0;
		while (k < ARRAY_LEN(known) && strcmp(known[k].name, name) != 0)
			k++;
		if (k == ARRAY_LEN(known))
			return error_set_field(
				e, ERROR_UNKNOWN_FIELD, name, "'%.64s' cannot be given here", name);
		if (check_length(name, value, known[k].max, e) < 0)
			return -1;
		*known[k].value = value;
	}
	return ret->name ? check_name(ret->name, "name", e) : 0;
}

static int check_type(struct http_request *req, struct error *e)
{
	if (http_has_type(req, "application/json"))
		return 0;
	return error_set(e, ERROR_UNSUPPORTED_MEDIA_TYPE,
		"the body must be JSON, with 'Content-Type: application/json'");
}

static void handle_import(struct http_request *req)
{
	static const struct portable_import_events import_events = {intake_room, imported};
	struct sandbox_spec spec = {.tenant = tenant_of(req)};
	struct error e;
	struct portable_import *import;
	struct intake *in = intake_new(req, &taker);
	if (check_type(req, &e) < 0 || parse_spec(req, &spec, &e) < 0 ||
		portable_import_begin(server_of(req)->box, &spec, &import_events, in, &import, &e) <
			0) {
		http_respond_error(req, &e);
		free(in);
		return;
	}
	intake_begin(in, import);
}

static const struct http_route portable_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/export", handle_export, 0},
	{HTTP_POST, "/v1/sandboxes/import", handle_import, IMPORT_MAX, .streams_body = true},
};

const struct route_table portable_table = ROUTE_TABLE(portable_routes);
