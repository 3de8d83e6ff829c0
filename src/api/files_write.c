/*
 * Many files in one request, written one after the other until one fails.
 *
 *     POST …/fs/write     a JSON object with all of them
 *     POST …/fs/upload    multipart/form-data: each part with a file name is a file, of any size
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/files.h"
#include "base/mem.h"
#include "http/multipart.h"

#define FILES_MAX 10000

/* ---- as JSON ---- */

struct write_body {
	const char *user, *cwd;
	const cJSON *files;
};

struct file_body {
	const char *path, *path64, *content, *encoding, *mode, *owner;
	bool parents, append, atomic, exclusive;
	int64_t offset;
};

#define AT(type, member) offsetof(struct type, member)

static const struct json_field write_fields[] = {
	{"user", FIELD_TEXT, AT(write_body, user), FIELD_NOT_EMPTY, 0, 63},
	{"cwd", FIELD_TEXT, AT(write_body, cwd), FIELD_NOT_EMPTY, 0, 4095},
	{"files", FIELD_ARRAY, AT(write_body, files), FIELD_REQUIRED, 0, FILES_MAX},
};

static const struct json_field file_fields[] = {
	{"path", FIELD_TEXT, AT(file_body, path), 0, 0, 4095},
	{"pathBase64", FIELD_TEXT, AT(file_body, path64), 0, 0, 8190},
	{"content", FIELD_TEXT, AT(file_body, content), FIELD_REQUIRED, 0, 32 << 20},
	{"encoding", FIELD_TEXT, AT(file_body, encoding), 0, 0, 16},
	{"mode", FIELD_TEXT, AT(file_body, mode), 0, 0, 5},
	{"owner", FIELD_TEXT, AT(file_body, owner), FIELD_NOT_EMPTY, 0, 127},
	{"parents", FIELD_BOOL, AT(file_body, parents), 0, 0, 0},
	{"append", FIELD_BOOL, AT(file_body, append), 0, 0, 0},
	{"atomic", FIELD_BOOL, AT(file_body, atomic), 0, 0, 0},
	{"exclusive", FIELD_BOOL, AT(file_body, exclusive), 0, 0, 0},
	{"offset", FIELD_INTEGER, AT(file_body, offset), 0, 0, INT64_MAX},
};

struct decoded_file {
	struct file_target target;
	const char *content;
	size_t len;
};

static unsigned api_files_write_flags_of(const struct file_body *b, bool has_mode)
{
	return (b->parents ? FILE_PARENTS : 0) | (b->append ? FILE_APPEND : 0) |
	       (b->atomic ? FILE_ATOMIC : 0) | (b->exclusive ? FILE_EXCLUSIVE : 0) |
	       (b->offset >= 0 ? FILE_AT_OFFSET : 0) | (has_mode ? FILE_HAS_MODE : 0);
}

/* The index goes in front of the field's name. */
static int name_field(size_t index, struct error *e)
{
	char field[sizeof e->field];
	snprintf(field, sizeof field, "files[%zu].%.30s", index, e->field);
	memcpy(e->field, field, sizeof field);
	return -1;
}

static int api_files_write_decode_file(
	const cJSON *item, struct scratch *memory, struct decoded_file *ret, struct error *e)
{
	struct file_body b = {.parents = true, .offset = -1};
	bool base64, has_mode;
	if (!cJSON_IsObject(item))
		return error_set_field(e, ERROR_INVALID_FIELD, "", "each file must be an object");
	if (json_decode(item, file_fields, ARRAY_LEN(file_fields), "", &b, e) < 0 ||
		files_body_path(b.path, b.path64, "path", NULL, memory, &ret->target.path, e) < 0 ||
		decode_encoding(b.encoding, "encoding", &base64, e) < 0 ||
		decode_mode(b.mode, "mode", &has_mode, &ret->target.mode, e) < 0)
		return -1;
	if (b.atomic && (b.append || b.offset >= 0))
		return error_set_field(e, ERROR_INVALID_FIELD, "atomic",
			"\"atomic\" cannot be together with \"append\" or \"offset\"");
	ret->target.flags = api_files_write_flags_of(&b, has_mode);
	ret->target.offset = b.offset >= 0 ? (uint64_t)b.offset : 0;
	ret->target.owner = b.owner;
	ret->content = b.content;
	ret->len = strlen(b.content);
	return base64 ? json_bytes(b.content, "content", memory, &ret->content, &ret->len, e) : 0;
}

static int api_files_write_decode_files(const cJSON *list, struct scratch *memory,
	struct decoded_file **ret, size_t *count, struct error *e)
{
	const cJSON *item;
	*count = 0;
	*ret = scratch_alloc(memory, ((size_t)cJSON_GetArraySize(list) + 1) * sizeof **ret);
	cJSON_ArrayForEach(item, list)
	{
		if (api_files_write_decode_file(item, memory, &(*ret)[*count], e) < 0)
			return name_field(*count, e);
		(*count)++;
	}
	return 0;
}

static void api_files_write_files(struct http_request *req, const cJSON *tree)
{
	struct error e;
	autoscratch memory = {0};
	struct write_body b = {0};
	struct decoded_file *files;
	size_t count;
	struct file_request request = {.fixed = {.op = FILE_WRITE, .flags = FILE_WITH_NAMES}};
	if (json_decode(tree, write_fields, ARRAY_LEN(write_fields), "", &b, &e) < 0 ||
		decode_place(b.user, b.cwd, &e) < 0 ||
		api_files_write_decode_files(b.files, &memory, &files, &count, &e) < 0) {
		api_refuse(req, &e);
		return;
	}
	struct files_actor place = {b.user, b.cwd};
	struct answer *a = files_begin(req, &place, &request, FILES_ANSWER_ENTRIES);
	for (size_t i = 0; i < count; i++)
		op_put_file(a->op, &files[i].target, files[i].content, files[i].len);
	op_put(a->op, &(struct op_item){OP_ITEM_END});
	answer_run(a);
}

static void api_files_write_handle_write(struct http_request *req)
{
	cJSON *tree = api_body(req);
	if (!tree)
		return;
	api_files_write_files(req, tree);
	cJSON_Delete(tree);
}

/* ---- as a form ---- */

struct upload {
	struct op *op;
	struct multipart *form;
	struct file_target target; /* what all of them have */
	bool is_file;              /* the part that comes now */
};

static int part_begin(void *arg, const struct multipart_part *part, struct error *e)
{
	struct upload *u = arg;
	u->is_file = part->filename != NULL;
	if (!u->is_file)
		return MULTIPART_GO_ON;
	if (part->filename[0] == '\0' || strlen(part->filename) > 4095)
		return error_set_field(e, ERROR_INVALID_FIELD, "filename",
			"a file's name must have 1 to 4095 bytes");
	if (decode_path(part->filename, "filename", false, e) < 0)
		return -1;
	u->target.path = part->filename;
	op_put(u->op, &(struct op_item){OP_ITEM_FILE, .target = u->target});
	return MULTIPART_GO_ON;
}

static int api_files_write_part_data(void *arg, const char *data, size_t len, struct error *e)
{
	struct upload *u = arg;
	(void)e;
	if (u->is_file)
		op_put(u->op, &(struct op_item){OP_ITEM_DATA, .bytes = {data, len}});
	return op_room(u->op) ? MULTIPART_GO_ON : MULTIPART_PAUSE;
}

static int part_end(void *arg, struct error *e)
{
	struct upload *u = arg;
	(void)e;
	if (u->is_file)
		op_put(u->op, &(struct op_item){OP_ITEM_FILE_END});
	return MULTIPART_GO_ON;
}

static void api_files_write_upload_finish(void *arg)
{
	struct upload *u = arg;
	multipart_destroy(u->form);
	free(u);
}

static ptrdiff_t upload_data(struct answer *a, const char *bytes, size_t len, struct error *e)
{
	return multipart_push(((struct upload *)a->body_arg)->form, bytes, len, e);
}

static int upload_end(struct answer *a, struct error *e)
{
	return multipart_end(((struct upload *)a->body_arg)->form, e);
}

static int parse_upload(
	struct http_request *req, struct files_actor *place, struct file_target *t, struct error *e)
{
	static const char *const known[] = {"user", "cwd", "mode", "owner", "atomic", NULL};
	bool has_mode;
	t->flags = FILE_PARENTS;
	t->owner = http_query(req, "owner");
	if (files_query_actor(req, known, place, e) < 0 ||
		files_query_flag(req, "atomic", FILE_ATOMIC, &t->flags, e) < 0 ||
		decode_mode(http_query(req, "mode"), "mode", &has_mode, &t->mode, e) < 0)
		return -1;
	t->flags |= has_mode ? FILE_HAS_MODE : 0;
	return 0;
}

static void api_files_write_handle_upload(struct http_request *req)
{
	static const struct multipart_events events = {
		part_begin, api_files_write_part_data, part_end};
	static const struct answer_body body = {
		upload_data, upload_end, api_files_write_upload_finish};
	struct error e;
	struct files_actor place;
	struct file_request request = {.fixed = {.op = FILE_WRITE, .flags = FILE_WITH_NAMES}};
	struct upload *u = mem_new(sizeof *u);
	if (parse_upload(req, &place, &u->target, &e) < 0 ||
		multipart_create(&u->form, http_header(req, "content-type"), FILES_MAX, &events, u,
			&e) < 0) {
		free(u);
		api_refuse(req, &e);
		return;
	}
	struct answer *a = files_begin(req, &place, &request, FILES_ANSWER_ENTRIES);
	u->op = a->op;
	a->body_arg = u;
	answer_run_with_body(a, &body);
}

static const struct http_route write_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/fs/write", api_files_write_handle_write, BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/fs/upload", api_files_write_handle_upload, FILES_UPLOAD_MAX,
		.streams_body = true},
};

const struct route_table files_write_table = ROUTE_TABLE(write_routes);
