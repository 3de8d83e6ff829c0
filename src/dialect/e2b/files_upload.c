/*
 * POST /files: one file as the body (application/octet-stream, compressed by gzip or not), or any
 * number of them as a form. Bytes go on to the sandbox as it takes them; nothing is kept here but a
 * window.
 *
 * Of a form the parts called "file" are files, each under the path in its filename; with ?path=
 * there is one, and that is its path. The headers X-Metadata-<key> become the attributes
 * user.e2b.<key> of every file of the request, instead of those it had.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "dialect/e2b/files.h"
#include "dialect/e2b/written.h"
#include "http/multipart.h"
#include "op/files.h"

#define METADATA_PREFIX  "x-metadata-"
#define METADATA_KEY_MAX 246
#define METADATA_MAX     4096

struct upload {
	struct answer *answer;
	const char *path; /* of the query; NULL: the form says */
	const char *user; /* NULL: nobody was named */
	char *current;    /* the file being written, for errors */
	struct multipart *form;
	bool compressed;     /* by gzip */
	struct buf metadata; /* key, NUL, value, NUL */
	struct written written;
	bool in_file; /* the part is one that is written */
	struct json_writer json;
	struct entry_writer entry;
};

static void files_upload_finish(struct answer *a)
{
	struct upload *u = a->own;
	multipart_destroy(u->form);
	buf_finish(&u->metadata);
	written_finish(&u->written);
	free(u->current);
}

static enum answer_failure upload_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	const struct upload *u = a->own;
	const struct error why = *e;
	const char *current = u->current ? u->current : "";
	(void)event;
	files_explain(current, u->user, &why, e);
	if (why.code == ERROR_IS_A_DIRECTORY)
		error_set(e, ERROR_IS_A_DIRECTORY, "path is a directory: %.250s", current);
	if (why.code == ERROR_INVALID_ARCHIVE)
		error_set(e, ERROR_INVALID_REQUEST, "the body is not valid gzip: %.200s",
			why.message);
	return ANSWER_ERROR;
}

/* ---- metadata ---- */

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e)
			return false;
	return true;
}

static int take_metadata(struct upload *u, struct error *e)
{
	const char *name, *value;
	size_t prefix = strlen(METADATA_PREFIX), total = 0;
	for (size_t i = 0; http_header_at(u->answer->req, i, &name, &value); i++) {
		if (strncasecmp(name, METADATA_PREFIX, prefix) != 0)
			continue;
		size_t key_len = strlen(name + prefix);
		total += key_len + strlen(value);
		if (key_len == 0 || key_len > METADATA_KEY_MAX || total > METADATA_MAX ||
			!is_printable(value))
			return error_set_field(e, ERROR_INVALID_FIELD, "metadata",
				"metadata must be printable ASCII, keys up to %d and all of it up to %d bytes",
				METADATA_KEY_MAX, METADATA_MAX);
		for (size_t k = 0; k < key_len; k++) {
			char c = name[prefix + k];
			buf_append_char(&u->metadata, c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c);
		}
		buf_append_char(&u->metadata, '\0');
		buf_append(&u->metadata, value, strlen(value) + 1);
	}
	return 0;
}

static void files_upload_put_attribute(
	struct upload *u, const char *name, const char *value, size_t len)
{
	op_put(u->answer->op,
		&(struct op_item){OP_ITEM_ATTRIBUTE, .attribute = {name, value, len}});
}

static void files_upload_put_metadata(struct upload *u)
{
	files_upload_put_attribute(u, ENTRY_ATTRIBUTES, NULL, 0);
	for (size_t at = 0; at < u->metadata.len;) {
		const char *key = u->metadata.data + at, *value = key + strlen(key) + 1;
		autobuf name = {0};
		buf_append_str(&name, ENTRY_ATTRIBUTES);
		buf_append(&name, key, strlen(key) + 1);
		if (!name.failed)
			files_upload_put_attribute(u, name.data, value, strlen(value));
		at += strlen(key) + strlen(value) + 2;
	}
}

/* ---- files ---- */

static int begin_file(struct upload *u, const char *given, struct error *e)
{
	const char *path = envd_path(given, e);
	if (!path)
		return -1;
	free(u->current);
	u->current = mem_copy_text(given);
	op_put(u->answer->op,
		&(struct op_item){OP_ITEM_FILE, .target = {.path = path, .flags = FILE_PARENTS}});
	files_upload_put_metadata(u);
	u->in_file = true;
	return 0;
}

static void files_upload_put_data(struct upload *u, const char *data, size_t len)
{
	op_put(u->answer->op, &(struct op_item){OP_ITEM_DATA, .bytes = {data, len}});
}

static void end_file(struct upload *u)
{
	op_put(u->answer->op, &(struct op_item){OP_ITEM_FILE_END});
	u->in_file = false;
}

/* The client waits until the sandbox has taken what it was given. */
static bool files_upload_is_full(const struct upload *u)
{
	return op_room(u->answer->op) == 0;
}

/* ---- a form ---- */

static int part_begins(void *arg, const struct multipart_part *part, struct error *e)
{
	struct upload *u = arg;
	if (strcmp(part->name, "file") != 0)
		return MULTIPART_GO_ON;
	if (!u->path && (!part->filename || !part->filename[0]))
		return error_set(e, ERROR_INVALID_REQUEST, "a file of the form has no filename");
	return begin_file(u, u->path ? u->path : part->filename, e) < 0 ? -1 : MULTIPART_GO_ON;
}

static int files_upload_part_data(void *arg, const char *data, size_t len, struct error *e)
{
	struct upload *u = arg;
	(void)e;
	if (!u->in_file)
		return MULTIPART_GO_ON;
	files_upload_put_data(u, data, len);
	return files_upload_is_full(u) ? MULTIPART_PAUSE : MULTIPART_GO_ON;
}

static int part_ends(void *arg, struct error *e)
{
	struct upload *u = arg;
	(void)e;
	if (u->in_file)
		end_file(u);
	return MULTIPART_GO_ON;
}

static const struct multipart_events part_events = {part_begins, files_upload_part_data, part_ends};

/* ---- the body ---- */

static ptrdiff_t files_upload_body_data(
	struct answer *a, const char *data, size_t len, struct error *e)
{
	struct upload *u = a->own;
	if (u->form)
		return multipart_push(u->form, data, len, e);
	files_upload_put_data(u, data, len);
	return (ptrdiff_t)len;
}

static int files_upload_body_end(struct answer *a, struct error *e)
{
	struct upload *u = a->own;
	if (u->form)
		return multipart_end(u->form, e);
	end_file(u);
	return 0;
}

/* ---- the answer ---- */

static int files_upload_put_written(struct answer *a, const struct op_event *event, struct error *e)
{
	struct upload *u = a->own;
	if (event->kind == OP_ENTRY) {
		if (written_add(&u->written, event->entry->path, a->out.len, e) < 0)
			return -1;
		entry_begin_written(&u->entry, event->entry);
	} else if (event->kind == OP_ATTRIBUTE) {
		entry_attribute(&u->entry, event->attribute);
	} else if (event->kind == OP_DONE) {
		entry_end(&u->entry);
		json_end_array(&u->json);
	}
	return 0;
}

static const struct answer_form upload_form = {.type = "application/json; charset=utf-8",
	.pace = ANSWER_WHOLE,
	.own_size = sizeof(struct upload),
	.put = files_upload_put_written,
	.fail = upload_fail,
	.finish = files_upload_finish};

/* ---- the request ---- */

static int upload_decode_encoding(struct upload *u, const char *encoding, struct error *e)
{
	if (!encoding || strcasecmp(encoding, "identity") == 0)
		return 0;
	if (strcasecmp(encoding, "gzip") != 0)
		return error_set(e, ERROR_UNSUPPORTED_MEDIA_TYPE,
			"a body may be compressed by gzip, not by '%.32s'", encoding);
	u->compressed = true;
	return 0;
}

/* What the body is; before anything is asked of the sandbox. */
static int open_body(struct upload *u, struct error *e)
{
	const char *encoding = http_header(u->answer->req, "content-encoding");
	if (http_has_type(u->answer->req, "multipart/form-data")) {
		if (encoding)
			return error_set(
				e, ERROR_UNSUPPORTED_MEDIA_TYPE, "a form cannot be compressed");
		return multipart_create(&u->form, http_header(u->answer->req, "content-type"),
			SIZE_MAX, &part_events, u, e);
	}
	if (!http_has_type(u->answer->req, "application/octet-stream"))
		return error_set(e, ERROR_INVALID_REQUEST,
			"files come as multipart/form-data or application/octet-stream");
	if (!u->path)
		return error_set_field(e, ERROR_MISSING_FIELD, "path", "\"path\" is required");
	return upload_decode_encoding(u, encoding, e);
}

static int upload_begin(struct upload *u, struct error *e)
{
	struct answer *a = u->answer;
	if (files_user(a->req, &u->user, e) < 0 || take_metadata(u, e) < 0 || open_body(u, e) < 0)
		return -1;
	a->op = op_files(&a->call, &(struct op_files){.user = u->user,
					   .as_root = true,
					   .request = {.fixed = {.op = FILE_WRITE,
							       .flags = FILE_WITH_ATTRIBUTES,
							       .limit = UINT64_MAX},
						   .text = {[FILE_PATH] = ""}},
					   .compression = u->compressed ? OP_GZIP : OP_PLAIN});
	return u->form ? 0 : begin_file(u, u->path, e);
}

static void files_upload_handle_upload(struct http_request *req)
{
	static const struct answer_body body = {files_upload_body_data, files_upload_body_end};
	struct error e = {0};
	const char *path = http_query(req, "path");
	struct answer *a = envd_answer(req, &upload_form);
	struct upload *u = a->own;
	u->answer = a;
	u->path = path && path[0] ? path : NULL;
	u->json.out = &a->out;
	u->entry.json = &u->json;
	json_begin_array(&u->json);
	if (upload_begin(u, &e) < 0)
		answer_refuse(a, &e);
	else
		answer_run_with_body(a, &body);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/files", files_upload_handle_upload, UINT64_MAX, true},
};

const struct route_table files_upload_table = ROUTE_TABLE(routes);
