/* One operation on files and its one answer. What it finds becomes JSON as it comes. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/files.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "op/files.h"

struct finding {
	enum files_answer kind;
	struct json_writer w;
	struct buf binary; /* of metadata: what is no text */
	struct json_writer binary_w;
	char *last;     /* the last entry's path, where the next page begins */
	int64_t total;  /* of replacements */
	bool too_large; /* the answer; the rest is left out */
	bool is_write;  /* of files that are counted */
};

static const char *const list_keys[FILES_ANSWER_COUNT] = {
	[FILES_ANSWER_ENTRIES] = "entries",
	[FILES_ANSWER_MATCHES] = "matches",
	[FILES_ANSWER_CHANGES] = "files",
};

static void finding_finish(struct answer *a)
{
	struct finding *f = a->own;
	buf_finish(&f->binary);
	free(f->last);
}

/* ---- what it finds ---- */

static bool files_answer_is_full(struct answer *a)
{
	struct finding *f = a->own;
	f->too_large |= a->out.len + f->binary.len > FILES_ANSWER_MAX;
	return f->too_large;
}

static void files_answer_put_entry(struct answer *a, const struct file_entry *entry)
{
	struct finding *f = a->own;
	if (f->kind == FILES_ANSWER_ENTRIES) {
		if (files_answer_is_full(a))
			return;
		free(f->last);
		f->last = strdup(entry->path);
	} else if (f->kind != FILES_ANSWER_ENTRY) {
		return;
	}
	files_put_entry(&f->w, entry);
}

static void put_match(struct answer *a, const struct file_match *match)
{
	struct json_writer *w = &((struct finding *)a->own)->w;
	if (files_answer_is_full(a))
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

static void put_change(struct answer *a, const struct file_change *change)
{
	struct finding *f = a->own;
	f->total += (int64_t)change->count;
	if (files_answer_is_full(a))
		return;
	json_begin_object(&f->w);
	files_put_name(&f->w, "path", change->path);
	json_put_int(&f->w, "replacements", (int64_t)change->count);
	json_end_object(&f->w);
}

static void files_answer_put_attribute(struct answer *a, const struct file_attribute *attribute)
{
	struct finding *f = a->own;
	if (files_answer_is_full(a))
		return;
	if (utf8_is_valid(attribute->value, attribute->len) &&
		!memchr(attribute->value, '\0', attribute->len)) {
		json_key(&f->w, attribute->name);
		json_string_n(&f->w, attribute->value, attribute->len);
	} else {
		json_key(&f->binary_w, attribute->name);
		json_base64(&f->binary_w, attribute->value, attribute->len);
	}
}

/* ---- the answer ---- */

static void begin_answer(struct answer *a)
{
	struct finding *f = a->own;
	const char *key = list_keys[f->kind];
	f->w.out = &a->out;
	f->binary_w.out = &f->binary;
	if (key) {
		json_begin_object(&f->w);
		json_key(&f->w, key);
		json_begin_array(&f->w);
	} else if (f->kind == FILES_ANSWER_METADATA) {
		json_begin_object(&f->w);
		json_key(&f->w, "metadata");
		json_begin_object(&f->w);
		json_begin_object(&f->binary_w);
	}
}

static void put_cursor(struct finding *f)
{
	size_t size = sodium_base64_encoded_len(
		strlen(f->last), sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	autofree char *text = mem_new(size);
	sodium_bin2base64(text, size, (const unsigned char *)f->last, strlen(f->last),
		sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	json_put_string(&f->w, "nextCursor", text);
}

static void end_list(struct finding *f, const struct file_result *result)
{
	bool truncated = result->truncated || f->too_large;
	json_end_array(&f->w);
	if (f->kind == FILES_ANSWER_CHANGES)
		json_put_int(&f->w, "replacements", f->total);
	json_put_bool(&f->w, "truncated", truncated);
	if (truncated && f->last)
		put_cursor(f);
	json_end_object(&f->w);
}

static void end_metadata(struct finding *f)
{
	json_end_object(&f->w);
	json_end_object(&f->binary_w);
	if (f->binary.len > 2) {
		buf_append_char(&f->binary, '\0');
		json_key(&f->w, "metadataBase64");
		json_raw(&f->w, f->binary.data);
	}
	json_end_object(&f->w);
}

static void put_exists(struct answer *a, bool exists)
{
	struct json_writer w = {.out = &a->out};
	json_begin_object(&w);
	json_put_bool(&w, "exists", exists);
	json_end_object(&w);
}

static void end_answer(struct answer *a, const struct file_result *result)
{
	struct finding *f = a->own;
	if (f->kind == FILES_ANSWER_NOTHING)
		a->status = 204;
	else if (f->kind == FILES_ANSWER_EXISTS)
		put_exists(a, true);
	else if (f->kind == FILES_ANSWER_METADATA)
		end_metadata(f);
	else if (list_keys[f->kind])
		end_list(f, result);
}

static int put_found(struct answer *a, const struct op_event *event, struct error *e)
{
	(void)e;
	if (event->kind == OP_ENTRY)
		files_answer_put_entry(a, event->entry);
	else if (event->kind == OP_MATCH)
		put_match(a, event->match);
	else if (event->kind == OP_CHANGE)
		put_change(a, event->change);
	else if (event->kind == OP_ATTRIBUTE)
		files_answer_put_attribute(a, event->attribute);
	else if (event->kind == OP_DONE)
		end_answer(a, &event->result);
	return 0;
}

static enum answer_failure files_answer_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	struct finding *f = a->own;
	if (f->kind == FILES_ANSWER_EXISTS && e->code == ERROR_NOT_FOUND && event &&
		event->reason == OP_ERROR) {
		put_exists(a, false);
		return ANSWER_PUT;
	}
	if (event && event->reason == OP_ERROR && e->field[0] == '\0' && f->is_write &&
		f->kind == FILES_ANSWER_ENTRIES)
		snprintf(e->field, sizeof e->field, "files[%llu]",
			(unsigned long long)event->result.count);
	return ANSWER_ERROR;
}

struct answer *files_begin(struct http_request *req, const struct files_actor *place,
	const struct file_request *request, enum files_answer kind)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct finding),
		.put = put_found,
		.fail = files_answer_fail,
		.finish = finding_finish};
	struct answer *a = api_answer(req, &form);
	struct finding *f = a->own;
	struct op_files files = {.user = place->user, .request = *request};
	files.request.text[FILE_CWD] = place->cwd;
	f->kind = kind;
	f->is_write = request->fixed.op == FILE_WRITE;
	begin_answer(a);
	a->op = op_files(&a->call, &files);
	return a;
}
