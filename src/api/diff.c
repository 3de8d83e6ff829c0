/*
 * /v1/sandboxes/{id}/diff: what a sandbox has changed, as JSON, as a unified diff, or as a tar. It
 * is answered while the disk is being walked, as fast as the client takes it.
 */
#include "box/comparison.h"

#include <string.h>
#include <sys/stat.h>

#include "api/feed.h"

struct diff_call {
	struct feed feed;
	enum diff_form form;
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
	if (call->feed.begun)
		return;
	json_begin_object(&call->writer);
	json_key(&call->writer, "changes");
	json_begin_array(&call->writer);
}

static void take_change(void *arg, const struct comparison_change *c)
{
	struct diff_call *call = arg;
	struct json_writer *w = &call->writer;
	bool was = c->old_mode, is = c->new_mode;
	begin_list(call);
	call->counts[c->kind]++;
	json_begin_object(w);
	json_put_string(w, "path", c->path);
	json_put_string(w, "change", kind_name(c->kind));
	json_put_string(w, "type", type_name(is ? c->new_mode : c->old_mode));
	if (was && is && (c->old_mode & S_IFMT) != (c->new_mode & S_IFMT))
		json_put_string(w, "oldType", type_name(c->old_mode));
	if (was && !S_ISDIR(c->old_mode))
		json_put_int(w, "oldSize", (int64_t)c->old_size);
	if (is && !S_ISDIR(c->new_mode))
		json_put_int(w, "size", (int64_t)c->new_size);
	json_end_object(w);
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
	json_end_array(w);
	for (int kind = DIFF_ADDED; kind <= DIFF_DELETED; kind++)
		json_put_int(w, kind_name((enum diff_kind)kind), (int64_t)call->counts[kind]);
	json_put_bool(w, "truncated", truncated);
	json_end_object(w);
}

static void done(void *arg, bool truncated, const struct error *e)
{
	struct diff_call *call = arg;
	if (!e && call->form == DIFF_RECORDS)
		end_list(call, truncated);
	feed_end(&call->feed, e);
}

static const struct comparison_events events = {take_change, take_data, done};

/* ---- what is asked for ---- */

static int parse_form(const char *text, enum diff_form *ret, struct error *e)
{
	static const char *const names[DIFF_FORM_END] = {
		[DIFF_RECORDS] = "json", [DIFF_TAR] = "tar", [DIFF_TEXT] = "text"};
	*ret = DIFF_RECORDS;
	for (int i = 0; text && i < DIFF_FORM_END; i++)
		if (names[i] && strcmp(text, names[i]) == 0) {
			*ret = (enum diff_form)i;
			return 0;
		}
	return text ? error_set_field(
			      e, ERROR_INVALID_FIELD, "format", "\"format\" is json, text or tar")
		    : 0;
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
	if (n && !(*snapshot = snapshot_find(api_box(req), api_tenant(req), n)))
		return error_set_field(
			e, ERROR_NOT_FOUND, "snapshot", "there is no snapshot '%.128s'", n);
	return 0;
}

static void handle_diff(struct http_request *req)
{
	static const char *const types[DIFF_FORM_END] = {[DIFF_RECORDS] = "application/json",
		[DIFF_TAR] = "application/x-tar",
		[DIFF_TEXT] = "text/x-diff; charset=utf-8"};
	struct error e;
	struct checkpoint *checkpoint = NULL;
	struct snapshot *snapshot = NULL;
	enum diff_form form;
	struct sandbox *s = api_sandbox(req);
	if (!s)
		return;
	if (parse_form(http_query(req, "format"), &form, &e) < 0 ||
		find_other(req, s, &checkpoint, &snapshot, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	struct diff_call *call = feed_new(sizeof *call, req, types[form], &source);
	call->form = form;
	call->writer.out = &call->feed.out;
	call->feed.source = comparison_begin(s, checkpoint, snapshot, form, &events, call);
}

static const struct http_route diff_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/diff", handle_diff, 0},
};

const struct api_table diff_table = API_TABLE(diff_routes);
