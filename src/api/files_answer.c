/* One operation on files and its one answer. What it finds becomes JSON as it comes. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/files.h"

struct files_call {
	struct http_request *req;
	struct file_call *file; /* NULL: it has ended */
	enum files_answer answer;
	struct buf body;
	struct json_writer w;
	struct buf binary; /* of metadata: what is no text */
	struct json_writer binary_w;
	char *last;     /* the last entry's path, where the next page begins */
	int64_t total;  /* of replacements */
	bool too_large; /* the answer; the rest is left out */
	bool is_write;  /* of files that are counted */
	struct files_body input;
	bool has_input, paused;
};

static const char *const list_keys[FILES_ANSWER_COUNT] = {
	[FILES_ANSWER_ENTRIES] = "entries",
	[FILES_ANSWER_MATCHES] = "matches",
	[FILES_ANSWER_CHANGES] = "files",
};

static void call_free(struct files_call *call)
{
	if (call->has_input && call->input.finish)
		call->input.finish(call->input.arg);
	buf_finish(&call->body);
	buf_finish(&call->binary);
	free(call->last);
	free(call);
}

static void call_aborted(void *arg)
{
	struct files_call *call = arg;
	if (call->file)
		file_cancel(call->file);
	call_free(call);
}

void files_fail(struct files_call *call, const struct error *e)
{
	struct http_request *req = call->req;
	call_aborted(call);
	http_respond_error(req, e);
}

/* ---- what it finds ---- */

static bool is_full(struct files_call *call)
{
	call->too_large |= call->body.len + call->binary.len > FILES_ANSWER_MAX;
	return call->too_large;
}

static void take_entry(void *arg, const struct file_entry *entry)
{
	struct files_call *call = arg;
	if (call->answer == FILES_ANSWER_ENTRIES) {
		if (is_full(call))
			return;
		free(call->last);
		call->last = strdup(entry->path);
	} else if (call->answer != FILES_ANSWER_ENTRY) {
		return;
	}
	files_put_entry(&call->w, entry);
}

static void take_match(void *arg, const struct file_match *match)
{
	struct files_call *call = arg;
	struct json_writer *w = &call->w;
	if (is_full(call))
		return;
	json_begin_object(w);
	files_put_name(w, "path", match->path);
	json_put_int(w, "line", (int64_t)match->line);
	json_put_int(w, "column", match->column);
	json_key(w, "text");
	json_string_n(w, match->text, match->text_len);
	if (match->cut)
		json_put_bool(w, "cut", true);
	json_end_object(w);
}

static void take_change(void *arg, const struct file_change *change)
{
	struct files_call *call = arg;
	call->total += (int64_t)change->count;
	if (is_full(call))
		return;
	json_begin_object(&call->w);
	files_put_name(&call->w, "path", change->path);
	json_put_int(&call->w, "replacements", (int64_t)change->count);
	json_end_object(&call->w);
}

static void take_attribute(void *arg, const struct file_attribute *a)
{
	struct files_call *call = arg;
	if (is_full(call))
		return;
	if (files_is_utf8(a->value, a->len) && !memchr(a->value, '\0', a->len)) {
		json_key(&call->w, a->name);
		json_string_n(&call->w, a->value, a->len);
	} else {
		json_key(&call->binary_w, a->name);
		json_base64(&call->binary_w, a->value, a->len);
	}
}

/* ---- the answer ---- */

static void begin_answer(struct files_call *call)
{
	const char *key = list_keys[call->answer];
	call->w.out = &call->body;
	call->binary_w.out = &call->binary;
	if (key) {
		json_begin_object(&call->w);
		json_key(&call->w, key);
		json_begin_array(&call->w);
	} else if (call->answer == FILES_ANSWER_METADATA) {
		json_begin_object(&call->w);
		json_key(&call->w, "metadata");
		json_begin_object(&call->w);
		json_begin_object(&call->binary_w);
	}
}

static void put_cursor(struct files_call *call)
{
	size_t size = sodium_base64_encoded_len(
		strlen(call->last), sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	autofree char *text = malloc(size);
	if (!text)
		abort();
	sodium_bin2base64(text, size, (const unsigned char *)call->last, strlen(call->last),
		sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	json_put_string(&call->w, "nextCursor", text);
}

static void end_list(struct files_call *call, const struct file_result *result)
{
	bool truncated = result->truncated || call->too_large;
	json_end_array(&call->w);
	if (call->answer == FILES_ANSWER_CHANGES)
		json_put_int(&call->w, "replacements", call->total);
	json_put_bool(&call->w, "truncated", truncated);
	if (truncated && call->last)
		put_cursor(call);
	json_end_object(&call->w);
}

static void end_metadata(struct files_call *call)
{
	json_end_object(&call->w);
	json_end_object(&call->binary_w);
	if (call->binary.len > 2) {
		buf_append_char(&call->binary, '\0');
		json_key(&call->w, "metadataBase64");
		json_raw(&call->w, call->binary.data);
	}
	json_end_object(&call->w);
}

static void put_exists(struct files_call *call, bool exists)
{
	json_begin_object(&call->w);
	json_put_bool(&call->w, "exists", exists);
	json_end_object(&call->w);
}

static void respond(struct files_call *call, const struct file_result *result)
{
	struct http_request *req = call->req;
	struct buf body = {0};
	bool nothing = call->answer == FILES_ANSWER_NOTHING;
	if (list_keys[call->answer])
		end_list(call, result);
	else if (call->answer == FILES_ANSWER_METADATA)
		end_metadata(call);
	body = call->body;
	call->body = (struct buf){0};
	call_free(call);
	if (nothing)
		http_respond(req, 204, NULL, &body);
	else
		api_respond_json(req, 200, &body);
}

static void call_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct files_call *call = arg;
	struct error named;
	call->file = NULL;
	if (e && e->field[0] == '\0' && call->is_write && call->answer == FILES_ANSWER_ENTRIES) {
		named = *e;
		snprintf(named.field, sizeof named.field, "files[%llu]",
			(unsigned long long)result->count);
		e = &named;
	}
	if (call->answer == FILES_ANSWER_EXISTS && (!e || e->code == ERROR_NOT_FOUND)) {
		put_exists(call, !e);
		e = NULL;
	}
	if (e)
		files_fail(call, e);
	else
		respond(call, result);
}

/* ---- input ---- */

static void input_has_room(void *arg)
{
	struct files_call *call = arg;
	if (!call->paused)
		return;
	call->paused = false;
	http_body_resume(call->req);
}

static void body_data(void *arg, const char *bytes, size_t len)
{
	struct files_call *call = arg;
	if (call->input.data(call->input.arg, call->file, bytes, len) < 0 ||
		file_room(call->file) > 0)
		return;
	call->paused = true;
	http_body_pause(call->req);
}

static void body_end(void *arg)
{
	struct files_call *call = arg;
	call->input.end(call->input.arg, call->file);
}

void files_stream_body(struct files_call *call, const struct files_body *body)
{
	struct http_body_sink sink = {body_data, body_end, call_aborted, call};
	call->input = *body;
	call->has_input = true;
	http_body_stream(call->req, &sink);
}

/* ---- the begin ---- */

struct files_call *files_begin(struct http_request *req, const struct files_place *place,
	const struct file_request *request, enum files_answer answer)
{
	static const struct file_events events = {
		.entry = take_entry,
		.match = take_match,
		.change = take_change,
		.attribute = take_attribute,
		.room = input_has_room,
		.done = call_done,
	};
	struct error e;
	struct file_request full = *request;
	struct sandbox *s = api_sandbox(req);
	if (!s)
		return NULL;
	struct files_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->answer = answer;
	call->is_write = request->fixed.op == FILE_WRITE;
	full.text[FILE_CWD] = place->cwd;
	if (file_begin(s, place->user, &full, &events, call, &call->file, &e) < 0) {
		call_free(call);
		http_respond_error(req, &e);
		return NULL;
	}
	begin_answer(call);
	http_on_abort(req, call_aborted, call);
	return call;
}

struct file_call *files_input(struct files_call *call)
{
	return call->file;
}
