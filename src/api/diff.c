/*
 * /v1/sandboxes/{id}/diff: what a sandbox has changed, as JSON, as a unified diff, or as a tar. It
 * is answered while the disk is being walked, as fast as the client takes it.
 */
#include "box/disk/comparison.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/feed.h"
#include "api/files.h"

struct diff_call {
	struct feed feed;
	enum diff_form form;
	bool as_lines; /* each change a line, instead of one object */
	struct json_writer writer;
	uint64_t counts[DIFF_DELETED + 1];
};

static void pause_source(void *source)
{
	comparison_pause(source);
}

static void resume_source(void *source)
{
	comparison_resume(source);
}

static void cancel_source(void *source)
{
	comparison_cancel(source);
}

static const struct feed_source source = {pause_source, resume_source, cancel_source};

/* ---- from the keeper ---- */

static const char *kind_name(enum diff_kind kind)
{
	return kind == DIFF_ADDED ? "added" : kind == DIFF_CHANGED ? "changed" : "deleted";
}

static const char *type_name(uint32_t mode)
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

static void begin_list(struct diff_call *call)
{
	if (call->feed.begun || call->as_lines)
		return;
	json_begin_object(&call->writer);
	json_key(&call->writer, "changes");
	json_begin_array(&call->writer);
}

static void put_mode(struct json_writer *w, const char *key, uint32_t mode)
{
	char text[8];
	snprintf(text, sizeof text, "%04o", mode & 07777);
	json_put_string(w, key, text);
}

static void put_change(struct json_writer *w, const struct comparison_change *c)
{
	bool was = c->old_mode, is = c->new_mode;
	json_begin_object(w);
	files_put_name(w, "path", c->path);
	json_put_string(w, "change", kind_name(c->kind));
	json_put_string(w, "type", type_name(is ? c->new_mode : c->old_mode));
	if (was && is && (c->old_mode & S_IFMT) != (c->new_mode & S_IFMT))
		json_put_string(w, "oldType", type_name(c->old_mode));
	if (was && !S_ISDIR(c->old_mode))
		json_put_int(w, "oldSize", (int64_t)c->old_size);
	if (is && !S_ISDIR(c->new_mode))
		json_put_int(w, "size", (int64_t)c->new_size);
	if (was && is && (c->old_mode & 07777) != (c->new_mode & 07777)) {
		put_mode(w, "oldMode", c->old_mode);
		put_mode(w, "mode", c->new_mode);
	}
	json_end_object(w);
}

static void end_line(struct diff_call *call)
{
	if (!call->as_lines)
		return;
	buf_append_char(&call->feed.out, '\n');
	call->writer.need_comma = false;
}

static void take_change(void *arg, const struct comparison_change *c)
{
	struct diff_call *call = arg;
	begin_list(call);
	call->counts[c->kind]++;
	put_change(&call->writer, c);
	end_line(call);
	feed_flush(&call->feed);
}

static void take_data(void *arg, const char *bytes, size_t len)
{
	struct diff_call *call = arg;
	buf_append(&call->feed.out, bytes, len);
	feed_flush(&call->feed);
}

static void end_list(struct diff_call *call, bool truncated)
{
	struct json_writer *w = &call->writer;
	begin_list(call);
	if (call->as_lines)
		json_begin_object(w);
	else
		json_end_array(w);
	for (int kind = DIFF_ADDED; kind <= DIFF_DELETED; kind++)
		json_put_int(w, kind_name((enum diff_kind)kind), (int64_t)call->counts[kind]);
	json_put_bool(w, "truncated", truncated);
	json_end_object(w);
	end_line(call);
}

static void done(void *arg, bool truncated, const struct error *e)
{
	struct diff_call *call = arg;
	struct error cut;
	if (!e && truncated && call->form != DIFF_RECORDS) {
		error_set(&cut, ERROR_NOT_SUPPORTED,
			"some directories are too deep for this form of a comparison");
		e = &cut;
	}
	if (!e && call->form == DIFF_RECORDS)
		end_list(call, truncated);
	feed_end(&call->feed, e);
}

static const struct comparison_events events = {take_change, take_data, done};

/* ---- what is asked for ---- */

static const struct format {
	const char *name, *type;
	enum diff_form form;
	bool as_lines;
} formats[] = {
	{"json", "application/json", DIFF_RECORDS, false},
	{"lines", "application/x-ndjson", DIFF_RECORDS, true},
	{"text", "text/x-diff; charset=utf-8", DIFF_TEXT, false},
	{"tar", "application/x-tar", DIFF_TAR, false},
};

static int parse_format(const char *text, const struct format **ret, struct error *e)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (strcmp(text ? text : "json", formats[i].name) == 0) {
			*ret = &formats[i];
			return 0;
		}
	return error_set_field(
		e, ERROR_INVALID_FIELD, "format", "\"format\" is json, lines, text or tar");
}

static int find_other(struct http_request *req, struct sandbox *s, struct checkpoint **checkpoint,
	struct snapshot **snapshot, struct error *e)
{
	const char *c = http_query(req, "checkpoint"), *n = http_query(req, "snapshot");
	if (c && n)
		return error_set_field(e, ERROR_INVALID_FIELD, "checkpoint",
			"compare with a checkpoint or with a snapshot, not with both");
	if (c && !(*checkpoint = checkpoint_find(s, c)))
		return error_set_field(
			e, ERROR_NOT_FOUND, "checkpoint", "there is no checkpoint '%.64s'", c);
	if (n && !(*snapshot = snapshot_find(server_of(req)->box, tenant_of(req), n)))
		return error_set_field(
			e, ERROR_NOT_FOUND, "snapshot", "there is no snapshot '%.128s'", n);
	return 0;
}

static void handle_diff(struct http_request *req)
{
	struct error e;
	struct checkpoint *checkpoint = NULL;
	struct snapshot *snapshot = NULL;
	const struct format *format;
	struct sandbox *s = api_sandbox(req);
	if (!s)
		return;
	if (parse_format(http_query(req, "format"), &format, &e) < 0 ||
		find_other(req, s, &checkpoint, &snapshot, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	struct diff_call *call = feed_new(sizeof *call, req, format->type, &source);
	call->form = format->form;
	call->as_lines = format->as_lines;
	call->writer.out = &call->feed.out;
	call->feed.source =
		comparison_begin(s, checkpoint, snapshot, format->form, &events, call, &e);
	if (!call->feed.source)
		feed_end(&call->feed, &e);
}

static const struct http_route diff_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/diff", handle_diff, 0},
};

const struct route_table diff_table = ROUTE_TABLE(diff_routes);
