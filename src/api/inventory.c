/* /v1/disks: what sandboxes, checkpoints, snapshots and volumes take, as it is found out. */
#include "op/disks.h"

#include <string.h>

#include "api/routes.h"

struct inventory_answer {
	bool as_lines; /* each disk a line, instead of one object */
	bool begun;
	struct json_writer writer;
};

static const char *inventory_kind_name(enum disk_kind kind)
{
	return kind == DISK_BOX ? "sandbox" : disk_kind_name(kind);
}

static void inventory_put_disk(struct json_writer *w, const struct disk_usage *disk)
{
	json_begin_object(w);
	json_put_string(w, "kind", inventory_kind_name(disk->kind));
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

static void inventory_begin_list(struct answer *a)
{
	struct inventory_answer *own = a->own;
	if (own->begun)
		return;
	own->begun = true;
	own->writer.out = &a->out;
	if (own->as_lines)
		return;
	json_begin_object(&own->writer);
	json_key(&own->writer, "disks");
	json_begin_array(&own->writer);
}

static int inventory_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct inventory_answer *own = a->own;
	struct json_writer *w = &own->writer;
	(void)e;
	inventory_begin_list(a);
	if (event->kind == OP_ROW) {
		inventory_put_disk(w, event->disk);
		if (own->as_lines) {
			buf_append_char(&a->out, '\n');
			w->need_comma = false;
		}
	} else if (!own->as_lines) {
		json_end_array(w);
		json_end_object(w);
	}
	return 0;
}

static enum answer_failure inventory_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	(void)a;
	if (event && event->reason == OP_NO_SANDBOX)
		error_set_field(e, ERROR_NOT_FOUND, "sandbox", "there is no such sandbox");
	return ANSWER_ERROR;
}

static int inventory_parse(
	struct http_request *req, bool *as_lines, const char **sandbox, struct error *e)
{
	const char *name, *value;
	for (size_t i = 0; http_query_at(req, i, &name, &value); i++) {
		if (strcmp(name, "format") == 0 &&
			(strcmp(value, "json") == 0 || strcmp(value, "lines") == 0))
			*as_lines = strcmp(value, "lines") == 0;
		else if (strcmp(name, "format") == 0)
			return error_set_field(
				e, ERROR_INVALID_FIELD, name, "\"format\" is json or lines");
		else if (strcmp(name, "sandbox") == 0)
			*sandbox = value;
		else
			return error_set_field(
				e, ERROR_UNKNOWN_FIELD, name, "there is no filter '%.64s'", name);
	}
	return 0;
}

static void handle_disks(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_LIVE,
		.own_size = sizeof(struct inventory_answer),
		.put = inventory_put,
		.fail = inventory_fail};
	struct error e = {0};
	struct answer *a = answer_new(req, &form);
	struct inventory_answer *own = a->own;
	if (inventory_parse(req, &own->as_lines, &a->call.sandbox, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	answer_name_sandbox(a, a->call.sandbox);
	if (own->as_lines)
		a->type = "application/x-ndjson";
	a->op = op_inventory(&a->call);
	answer_run(a);
}

static const struct http_route inventory_routes[] = {
	{HTTP_GET, "/v1/disks", handle_disks, 0},
};

const struct route_table inventory_table = ROUTE_TABLE(inventory_routes);
