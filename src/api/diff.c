/*
 * /v1/sandboxes/{id}/diff: what a sandbox has changed, as JSON, as a unified diff, or as a tar. It
 * is answered while the disk is being walked, as fast as the client takes it.
 */
#include "op/disks.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/files.h"
#include "api/routes.h"

/* ---- changes ---- */

static const char *diff_kind_name(enum diff_kind kind)
{
	return kind == DIFF_ADDED ? "added" : kind == DIFF_CHANGED ? "changed" : "deleted";
}

static const char *diff_type_name(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	default:
		return "other";
	}
}

static void diff_put_mode(struct json_writer *w, const char *key, uint32_t mode)
{
	char text[8];
	snprintf(text, sizeof text, "%04o", mode & 07777);
	json_put_string(w, key, text);
}

static void diff_put_change(struct json_writer *w, const struct disk_change *c)
{
	bool was = c->old_mode, is = c->new_mode;
	json_begin_object(w);
	files_put_name(w, "path", c->path);
	json_put_string(w, "change", diff_kind_name(c->kind));
	json_put_string(w, "type", diff_type_name(is ? c->new_mode : c->old_mode));
	if (was && is && (c->old_mode & S_IFMT) != (c->new_mode & S_IFMT))
		json_put_string(w, "oldType", diff_type_name(c->old_mode));
	if (was && !S_ISDIR(c->old_mode))
		json_put_int(w, "oldSize", (int64_t)c->old_size);
	if (is && !S_ISDIR(c->new_mode))
		json_put_int(w, "size", (int64_t)c->new_size);
	if (was && is && (c->old_mode & 07777) != (c->new_mode & 07777)) {
		diff_put_mode(w, "oldMode", c->old_mode);
		diff_put_mode(w, "mode", c->new_mode);
	}
	json_end_object(w);
}

/* ---- the answer ---- */

static const struct diff_format {
	const char *name, *type;
	enum diff_form form;
	bool as_lines; /* each change a line, instead of one object */
} diff_formats[] = {
	{"json", "application/json", DIFF_RECORDS, false},
	{"lines", "application/x-ndjson", DIFF_RECORDS, true},
	{"text", "text/x-diff; charset=utf-8", DIFF_TEXT, false},
	{"tar", "application/x-tar", DIFF_TAR, false},
};

struct diff_answer {
	const struct diff_format *format;
	struct json_writer writer;
	bool begun;
	uint64_t counts[DIFF_DELETED + 1];
};

static void diff_begin_list(struct answer *a)
{
	struct diff_answer *own = a->own;
	if (own->begun)
		return;
	own->begun = true;
	own->writer.out = &a->out;
	if (own->format->as_lines)
		return;
	json_begin_object(&own->writer);
	json_key(&own->writer, "changes");
	json_begin_array(&own->writer);
}

static void diff_end_line(struct answer *a)
{
	struct diff_answer *own = a->own;
	if (!own->format->as_lines)
		return;
	buf_append_char(&a->out, '\n');
	own->writer.need_comma = false;
}

static void diff_end_list(struct answer *a, bool truncated)
{
	struct diff_answer *own = a->own;
	struct json_writer *w = &own->writer;
	diff_begin_list(a);
	if (own->format->as_lines)
		json_begin_object(w);
	else
		json_end_array(w);
	for (int kind = DIFF_ADDED; kind <= DIFF_DELETED; kind++)
		json_put_int(w, diff_kind_name((enum diff_kind)kind), (int64_t)own->counts[kind]);
	json_put_bool(w, "truncated", truncated);
	json_end_object(w);
	diff_end_line(a);
}

static int diff_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct diff_answer *own = a->own;
	(void)e;
	if (event->kind == OP_DATA) {
		answer_put_bytes(a, event->data);
	} else if (event->kind == OP_ROW) {
		diff_begin_list(a);
		own->counts[event->disk_change->kind]++;
		diff_put_change(&own->writer, event->disk_change);
		diff_end_line(a);
	} else if (own->format->form == DIFF_RECORDS) {
		diff_end_list(a, event->truncated);
	}
	return 0;
}

/* ---- what is asked for ---- */

static int diff_parse(const struct http_request *req, const struct diff_format **format,
	struct op_diff *ret, struct error *e)
{
	const char *text = http_query(req, "format");
	*format = NULL;
	for (size_t i = 0; i < ARRAY_LEN(diff_formats); i++)
		if (strcmp(text ? text : "json", diff_formats[i].name) == 0)
			*format = &diff_formats[i];
	if (!*format)
		return error_set_field(
			e, ERROR_INVALID_FIELD, "format", "\"format\" is json, lines, text or tar");
	*ret = (struct op_diff){.checkpoint = http_query(req, "checkpoint"),
		.snapshot = http_query(req, "snapshot"),
		.form = (*format)->form};
	if (ret->checkpoint && ret->snapshot)
		return error_set_field(e, ERROR_INVALID_FIELD, "checkpoint",
			"compare with a checkpoint or with a snapshot, not with both");
	return 0;
}

static void handle_diff(struct http_request *req)
{
	static const struct answer_form form = {
		.pace = ANSWER_BULK, .own_size = sizeof(struct diff_answer), .put = diff_put};
	struct error e = {0};
	struct op_diff diff;
	struct answer *a = api_answer(req, &form);
	struct diff_answer *own = a->own;
	if (diff_parse(req, &own->format, &diff, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->type = own->format->type;
	a->op = op_diff(&a->call, &diff);
	answer_run(a);
}

static const struct http_route diff_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/diff", handle_diff, 0},
};

const struct route_table diff_table = ROUTE_TABLE(diff_routes);
