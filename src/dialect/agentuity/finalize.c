/*
 * POST /sandbox/snapshots/{id}/finalize: the build's disk becomes a snapshot, with variables for
 * those that are made of it.
 *
 * Packages are installed before a sandbox is made, so a build that wants some gets a second sandbox
 * with them, and its home is copied over, from init to init.
 */
#include <stdlib.h>
#include <string.h>

#include "box/core/box.h"
#include "box/core/creation.h"
#include "box/disk/snapshot.h"
#include "box/files/files.h"
#include "box/sandbox/sandbox.h"
#include "dialect/agentuity/builds.h"
#include "dialect/agentuity/create.h"
#include "dialect/agentuity/snapshots.h"

#define SETTINGS_MAX (16 * 1024)

struct finalize {
	struct http_request *req; /* NULL once the client has gone */
	struct box *box;
	cJSON *body, *build; /* what the rest borrows from */
	struct scratch memory;
	char *tenant;
	struct snapshot_spec spec;
	char build_id[ID_SIZE];
	char target_id[ID_SIZE]; /* of which the snapshot is made */
	struct file_call *packing, *unpacking;
};

/* ---- what is asked for ---- */

struct finalize_body {
	const cJSON *dependencies, *packages, *env, *metadata;
};

struct build_note {
	const char *name, *tag, *description;
};

static const struct json_field body_fields[] = {
	{"dependencies", JSON_ARRAY, offsetof(struct finalize_body, dependencies), 0, 0, 200},
	{"packages", JSON_ARRAY, offsetof(struct finalize_body, packages), 0, 0, 200},
	{"env", JSON_STRING_MAP, offsetof(struct finalize_body, env), 0, 0, 1000},
	{"metadata", JSON_STRING_MAP, offsetof(struct finalize_body, metadata), 0, 0, 1000},
};

static const struct json_field note_fields[] = {
	{"name", JSON_STRING, offsetof(struct build_note, name), 0, 0, 128},
	{"tag", JSON_STRING, offsetof(struct build_note, tag), 0, 0, 128},
	{"description", JSON_STRING, offsetof(struct build_note, description), 0, 0, 1024},
};

static int check_env_size(const char *const *env, struct error *e)
{
	size_t size = 0;
	for (; env && *env; env++)
		size += strlen(*env) + 1;
	return size > SETTINGS_MAX ? error_set_field(e, ERROR_INVALID_FIELD, "env",
					     "\"env\" has more than %d bytes", SETTINGS_MAX)
				   : 0;
}

static int finalize_decode(struct finalize *f, struct sandbox_spec *wanted, struct error *e)
{
	struct finalize_body body = {0};
	struct build_note note = {0};
	if (json_decode_known(f->body, body_fields, ARRAY_LEN(body_fields), "", &body, e) < 0 ||
		json_decode_known(f->build, note_fields, ARRAY_LEN(note_fields), "", &note, e) <
			0 ||
		json_environment(body.env, "env", &f->memory, &f->spec.env, e) < 0 ||
		check_env_size(f->spec.env, e) < 0 ||
		json_text(body.metadata, "metadata", SETTINGS_MAX, &f->memory, &f->spec.metadata,
			e) < 0 ||
		agentuity_decode_names(body.dependencies, "dependencies", &f->memory,
			&wanted->dependencies, e) < 0 ||
		agentuity_decode_names(
			body.packages, "packages", &f->memory, &wanted->packages, e) < 0)
		return -1;
	f->spec.name = note.name;
	f->spec.tag = note.tag;
	f->spec.description = note.description;
	f->spec.measure = true;
	return 0;
}

/* ---- the end ---- */

static void finalize_aborted(void *arg)
{
	((struct finalize *)arg)->req = NULL;
}

static void finalize_free(struct finalize *f)
{
	scratch_finish(&f->memory);
	cJSON_Delete(f->body);
	cJSON_Delete(f->build);
	free(f->tenant);
	free(f);
}

static void finalize_forget(struct finalize *f, const char *id)
{
	struct sandbox *s = sandbox_find(f->box, f->tenant, id);
	if (s)
		sandbox_destroy(s, NULL, NULL);
}

/* The build stays: it can be finished in another way. */
static void fail(struct finalize *f, const struct error *e)
{
	if (f->packing)
		file_cancel(f->packing);
	if (f->unpacking)
		file_cancel(f->unpacking);
	if (f->target_id[0] && strcmp(f->target_id, f->build_id) != 0)
		finalize_forget(f, f->target_id);
	if (f->req)
		http_respond_error(f->req, e);
	finalize_free(f);
}

static void snapshot_made(
	void *arg, struct snapshot *made, int64_t frozen_us, const struct error *e)
{
	struct finalize *f = arg;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct snapshot_view view;
	(void)frozen_us;
	if (!made) {
		fail(f, e);
		return;
	}
	if (f->req) {
		snapshot_view(made, &view);
		agentuity_begin_data(&w);
		agentuity_put_snapshot(&w, &view);
		agentuity_respond_data(f->req, 200, &w);
	}
	finalize_forget(f, f->build_id);
	if (strcmp(f->target_id, f->build_id) != 0)
		finalize_forget(f, f->target_id);
	finalize_free(f);
}

static void make_snapshot(struct finalize *f)
{
	struct error e;
	struct sandbox *s = sandbox_find(f->box, f->tenant, f->target_id);
	error_set(&e, ERROR_NOT_FOUND, "the snapshot build has ended");
	if (!s || snapshot_create(s, &f->spec, snapshot_made, f, &e) < 0)
		fail(f, &e);
}

/* ---- from one sandbox to the other ---- */

static void finalize_pack_content(void *arg, uint64_t length, uint64_t offset)
{
	(void)arg;
	(void)length;
	(void)offset;
}

static void finalize_pack_data(void *arg, struct buf *bytes)
{
	struct finalize *f = arg;
	file_put_data(f->unpacking, bytes->data, bytes->len);
	if (file_room(f->unpacking) == 0)
		file_pause(f->packing);
}

static void finalize_pack_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct finalize *f = arg;
	(void)result;
	f->packing = NULL;
	if (e)
		fail(f, e);
	else
		file_put_end(f->unpacking);
}

static void finalize_unpack_room(void *arg)
{
	struct finalize *f = arg;
	if (f->packing)
		file_resume(f->packing);
}

static void finalize_ignore_entry(void *arg, const struct file_entry *entry)
{
	(void)arg;
	(void)entry;
}

static void finalize_unpack_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct finalize *f = arg;
	(void)result;
	f->unpacking = NULL;
	if (e)
		fail(f, e);
	else
		make_snapshot(f);
}

static void copy_home(void *arg, const struct file_result *result, const struct error *e)
{
	static const struct file_events packing = {.content = finalize_pack_content,
		.data = finalize_pack_data,
		.done = finalize_pack_done};
	static const struct file_events unpacking = {.entry = finalize_ignore_entry,
		.room = finalize_unpack_room,
		.done = finalize_unpack_done};
	static const struct file_request pack = {
		.fixed.op = FILE_PACK, .text[FILE_PATH] = AGENTUITY_HOME};
	static const struct file_request unpack = {
		.fixed.op = FILE_UNPACK, .text[FILE_PATH] = AGENTUITY_HOME};
	struct finalize *f = arg;
	struct error failure;
	struct sandbox *from = sandbox_find(f->box, f->tenant, f->build_id);
	struct sandbox *to = sandbox_find(f->box, f->tenant, f->target_id);
	(void)result;
	error_set(&failure, ERROR_NOT_FOUND, "the snapshot build has ended");
	if (e || !from || !to ||
		file_begin(to, NULL, &unpack, &unpacking, f, &f->unpacking, &failure) < 0 ||
		file_begin(from, NULL, &pack, &packing, f, &f->packing, &failure) < 0)
		fail(f, e ? e : &failure);
}

/* Makes the directory that is $HOME, which no template brings. */
static int finalize_make_home(
	struct sandbox *s, const struct file_events *events, void *arg, struct error *e)
{
	struct file_call *making;
	struct sandbox_view view;
	sandbox_view(s, &view);
	const struct file_request request = {
		.fixed = {.op = FILE_MKDIR,
			.flags = FILE_PARENTS | FILE_EXIST_OK | FILE_HAS_MODE,
			.mode = 0755},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = AGENTUITY_HOME, [FILE_OWNER] = view.user},
	};
	return file_begin(s, "root", &request, events, arg, &making, e);
}

static void target_made(void *arg, struct sandbox *s, const struct error *e)
{
	static const struct file_events events = {
		.entry = finalize_ignore_entry, .done = copy_home};
	struct finalize *f = arg;
	struct sandbox_view view;
	struct error failure;
	if (!s) {
		fail(f, e);
		return;
	}
	sandbox_view(s, &view);
	memcpy(f->target_id, view.id, ID_SIZE);
	if (finalize_make_home(s, &events, f, &failure) < 0)
		fail(f, &failure);
}

/* ---- the route ---- */

static void finalize(struct http_request *req, const struct sandbox *s, cJSON *build, cJSON *body)
{
	struct error e = {0};
	struct sandbox_view view;
	struct finalize *f = calloc(1, sizeof *f);
	sandbox_view(s, &view);
	if (!f || !(f->tenant = strdup(view.tenant)))
		abort();
	f->req = req;
	f->box = server_of(req)->box;
	f->body = body;
	f->build = build;
	memcpy(f->build_id, view.id, ID_SIZE);
	http_on_abort(req, finalize_aborted, f);
	struct sandbox_spec wanted = {.tenant = f->tenant,
		.template_name = view.template_name,
		.lease_ms = BUILD_LIFE_MS,
		.on_lease = EXPIRY_DESTROY};
	if (finalize_decode(f, &wanted, &e) < 0) {
		fail(f, &e);
	} else if (wanted.dependencies || wanted.packages) {
		if (!sandbox_create(f->box, &wanted, target_made, f, &e))
			fail(f, &e);
	} else {
		memcpy(f->target_id, f->build_id, ID_SIZE);
		make_snapshot(f);
	}
}

static void handle_finalize(struct http_request *req)
{
	struct sandbox *s = build_in_path(req);
	cJSON *build = s ? build_of(s) : NULL;
	if (!build) {
		build_respond_missing(req);
		return;
	}
	cJSON *body = agentuity_body(req);
	if (body)
		finalize(req, s, build, body);
	else
		cJSON_Delete(build);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/snapshots/{snapshot}/finalize", handle_finalize, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_finalize_table = ROUTE_TABLE(routes);
