/* /v1/disks: what sandboxes, checkpoints, snapshots and volumes take, as it is found out. */
#include "box/core/inventory.h"

#include <string.h>

#include "api/feed.h"

struct inventory_call {
	struct feed feed;
	bool as_lines; /* each disk a line, instead of one object */
	struct json_writer writer;
};

static void pause_source(void *source)
{
	inventory_pause(source);
}

static void resume_source(void *source)
{
	inventory_resume(source);
}

static void cancel_source(void *source)
{
	inventory_cancel(source);
}

static const struct feed_source source = {pause_source, resume_source, cancel_source};

static const char *kind_name(enum disk_kind kind)
{
	return kind == DISK_BOX ? "sandbox" : disk_kind_name(kind);
}

static void put_disk(struct json_writer *w, const struct inventory_disk *disk)
{
	json_begin_object(w);
	json_put_string(w, "kind", kind_name(disk->kind));
	json_put_string(w, "id", disk->id);
	json_put_string(w, "name", disk->name);
	if (disk->sandbox[0])
		json_put_string(w, "sandboxId", disk->sandbox);
	json_put_int(w, "bytes", disk->bytes);
	json_put_int(w, "files", disk->files);
	if (disk->limit)
		json_put_int(w, "limitBytes", disk->limit);
	json_end_object(w);
}

static void take_disk(void *arg, const struct inventory_disk *disk)
{
	struct inventory_call *call = arg;
	put_disk(&call->writer, disk);
	if (call->as_lines) {
		buf_append_char(&call->feed.out, '\n');
		call->writer.need_comma = false;
	}
	feed_flush(&call->feed);
}

static void done(void *arg, const struct error *e)
{
	struct inventory_call *call = arg;
	if (!call->as_lines) {
		json_end_array(&call->writer);
		json_end_object(&call->writer);
	}
	feed_end(&call->feed, e);
}

static int parse_query(
	struct http_request *req, bool *as_lines, struct sandbox **only, struct error *e)
{
	const char *name, *value;
	for (size_t i = 0; http_query_at(req, i, &name, &value); i++) {
		if (strcmp(name, "format") == 0 &&
			(strcmp(value, "json") == 0 || strcmp(value, "lines") == 0))
			*as_lines = strcmp(value, "lines") == 0;
		else if (strcmp(name, "format") == 0)
			return error_set_field(
				e, ERROR_INVALID_FIELD, name, "\"format\" is json or lines");
		else if (strcmp(name, "sandbox") != 0)
			return error_set_field(
				e, ERROR_UNKNOWN_FIELD, name, "there is no filter '%.64s'", name);
		else if (!(*only = sandbox_find(server_of(req)->box, tenant_of(req), value)))
			return error_set_field(
				e, ERROR_NOT_FOUND, name, "there is no such sandbox");
	}
	return 0;
}

static void handle_disks(struct http_request *req)
{
	static const struct inventory_events events = {take_disk, done};
	struct error e;
	bool as_lines = false;
	struct sandbox *only = NULL;
	if (parse_query(req, &as_lines, &only, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	struct inventory_call *call = feed_new(
		sizeof *call, req, as_lines ? "application/x-ndjson" : "application/json", &source);
	struct inventory *inventory =
		inventory_begin(server_of(req)->box, tenant_of(req), only, &events, call, &e);
	if (!inventory) {
		feed_end(&call->feed, &e);
		return;
	}
	call->feed.source = inventory;
	call->as_lines = as_lines;
	call->writer.out = &call->feed.out;
	if (!as_lines) {
		json_begin_object(&call->writer);
		json_key(&call->writer, "disks");
		json_begin_array(&call->writer);
	}
	feed_flush(&call->feed);
	inventory_resume(inventory);
}

static const struct http_route inventory_routes[] = {
	{HTTP_GET, "/v1/disks", handle_disks, 0},
};

const struct route_table inventory_table = ROUTE_TABLE(inventory_routes);
