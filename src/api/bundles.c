/* /v1/snapshots/{snapshot}/export and /v1/snapshots/import: snapshots as files. */
#include "op/disks.h"

#include <stdio.h>
#include <string.h>

#include "answer/records.h"
#include "api/encode.h"
#include "api/routes.h"
#include "op/snapshots.h"

#define IMPORT_MAX (UINT64_C(1) << 40)

/* ---- export ---- */

struct bundle_answer {
	char id[ID_SIZE]; /* of the snapshot; "": it is no file to be kept under that name */
	bool refused;     /* *refusal is told, once the snapshot is known to be there */
	struct error refusal;
};

static int bundle_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct bundle_answer *own = a->own;
	if (own->refused) {
		*e = own->refusal;
		return -1;
	}
	if (event->kind == OP_ROW)
		memcpy(own->id, event->snapshot->id, ID_SIZE);
	else if (event->kind == OP_DATA)
		answer_put_bytes(a, event->data);
	return 0;
}

static void bundle_add_headers(struct answer *a)
{
	const struct bundle_answer *own = a->own;
	char disposition[64];
	if (!own->id[0])
		return;
	snprintf(disposition, sizeof disposition, "attachment; filename=\"%s.tar.zst\"", own->id);
	http_add_header(a->req, "Content-Disposition", disposition);
}

static void handle_export_snapshot(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/zstd",
		.pace = ANSWER_BULK,
		.own_size = sizeof(struct bundle_answer),
		.put = bundle_put,
		.head = bundle_add_headers};
	const char *snapshot = http_param(req, "snapshot"), *format = http_query(req, "format");
	struct answer *a = answer_new(req, &form);
	struct bundle_answer *own = a->own;
	if (!format || strcmp(format, "tar") == 0) {
		a->op = op_bundle_export(&a->call, snapshot);
	} else if (strcmp(format, "json") == 0) {
		a->type = "application/json";
		a->op = op_portable_export_snapshot(&a->call, snapshot);
	} else {
		own->refused = true;
		error_set_field(
			&own->refusal, ERROR_INVALID_FIELD, "format", "\"format\" is tar or json");
		a->op = op_snapshot_get(&a->call, snapshot);
	}
	answer_run(a);
}

/* ---- import ---- */

static int bundle_parse_spec(struct http_request *req, struct snapshot_spec *ret, struct error *e)
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

static void handle_import_snapshot(struct http_request *req)
{
	static const struct answer_records records = {.table = &snapshot_model};
	static const struct answer_form form = {ANSWER_RECORD(&records)};
	struct snapshot_spec spec = {0};
	struct error e = {0};
	struct answer *a = answer_new(req, &form);
	if (bundle_parse_spec(req, &spec, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 201;
	a->op = op_bundle_import(&a->call, &spec);
	answer_run_with_body(a, &answer_body_file);
}

static const struct http_route bundle_routes[] = {
	{HTTP_GET, "/v1/snapshots/{snapshot}/export", handle_export_snapshot, 0},
	{HTTP_POST, "/v1/snapshots/import", handle_import_snapshot, IMPORT_MAX,
		.streams_body = true},
};

const struct route_table bundle_table = ROUTE_TABLE(bundle_routes);
