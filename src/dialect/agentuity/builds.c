/*
 * Snapshots made of an archive: POST /sandbox/snapshots/build begins one, its archive is PUT to the
 * address in the answer (which needs no key) or to /sandbox/snapshots/{id}/upload. The rest is in
 * finalize.c.
 *
 * A build is a sandbox: the archive is unpacked into its home as it comes, and its disk becomes the
 * snapshot. Its metadata says what the snapshot is to be called, so nothing is kept here. One that
 * is not finished ends by itself. The id of a build is not that of its snapshot, which is in the
 * last answer.
 */
#include <stdlib.h>
#include <string.h>

#include "answer/json_body.h"
#include "dialect/agentuity/archives.h"
#include "dialect/agentuity/builds.h"
#include "dialect/agentuity/create.h"
#include "op/life.h"

#define TOKEN_KIND "agentuity-upload"
#define UPLOAD_MAX (UINT64_C(1) << 40)

/* ---- begin ---- */

struct build_body {
	const char *runtime, *name, *tag, *description;
	bool is_public;
};

#define AT(member) offsetof(struct build_body, member)

static const struct json_field build_fields[] = {
	{"runtime", FIELD_TEXT, AT(runtime), FIELD_REQUIRED | FIELD_NOT_EMPTY, 0, 256},
	{"name", FIELD_TEXT, AT(name), 0, 0, 128},
	{"tag", FIELD_TEXT, AT(tag), 0, 0, 128},
	{"description", FIELD_TEXT, AT(description), 0, 0, 1024},
	{"public", FIELD_BOOL, AT(is_public), 0, 0, 0},
};

static int refuse_public(const struct build_body *b, struct error *e)
{
	return b->is_public ? error_set_field(e, ERROR_NOT_IMPLEMENTED, "public",
				      "this server has no public snapshots")
			    : 0;
}

/* What finalize needs to know, as the sandbox's metadata. */
static void agentuity_builds_describe(const struct build_body *b, struct buf *out)
{
	struct json_writer w = {.out = out};
	json_begin_object(&w);
	json_key(&w, BUILD_MARK);
	json_begin_object(&w);
	if (b->name)
		json_put_string(&w, "name", b->name);
	if (b->tag)
		json_put_string(&w, "tag", b->tag);
	if (b->description)
		json_put_string(&w, "description", b->description);
	json_end_object(&w);
	json_end_object(&w);
	buf_append_char(out, '\0');
}

static void put_upload_url(struct json_writer *w, const struct http_request *req, const char *id)
{
	char token[AUTH_TOKEN_SIZE];
	autobuf url = {0};
	auth_make_token(server_of(req)->auth, auth_mark(req), TOKEN_KIND, id, token);
	agentuity_append_base(&url, req);
	buf_append_str(&url, "/upload/");
	buf_append_str(&url, token);
	buf_append_char(&url, '\0');
	if (!url.failed)
		json_put_string(w, "uploadUrl", url.data);
}

static int begun_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	agentuity_begin_data(&w);
	json_begin_object(&w);
	agentuity_put_id(&w, "snapshotId", "snp_", event->sandbox->id);
	put_upload_url(&w, a->req, event->sandbox->id);
	json_end_object(&w);
	json_end_object(&w);
	return 0;
}

static void handle_begin(struct http_request *req)
{
	static const struct answer_form form = {
		.type = "application/json", .pace = ANSWER_WHOLE, .put = begun_put};
	struct error e = {0};
	struct build_body b = {0};
	struct buf metadata = {0};
	struct answer *a = agentuity_answer(req, &form);
	const cJSON *body = answer_json(a, &e);
	if (!body ||
		json_decode_known(body, build_fields, ARRAY_LEN(build_fields), "", &b, &e) < 0 ||
		refuse_public(&b, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	agentuity_builds_describe(&b, &metadata);
	scratch_own(&a->call.memory, metadata.data, free);
	const struct op_create create = {.home = AGENTUITY_HOME,
		.spec = {.template_name =
				 strncmp(b.runtime, "srt_", 4) == 0 ? b.runtime + 4 : b.runtime,
			.has_network = true,
			.metadata = metadata.data,
			.lease_ms = BUILD_LIFE_MS,
			.on_lease = EXPIRY_DESTROY}};
	a->status = 201;
	a->op = op_create(&a->call, &create);
	answer_run(a);
}

/* ---- the archive ---- */

static int uploaded_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	if (event->kind != OP_DONE)
		return 0;
	agentuity_begin_data(&w);
	json_begin_object(&w);
	json_put_bool(&w, "success", true);
	json_put_bool(&w, "scanned", false);
	json_end_object(&w);
	json_end_object(&w);
	return 0;
}

enum answer_failure build_fail(struct answer *a, struct error *e, const struct op_event *event)
{
	(void)a;
	if (event && event->reason == OP_NO_SANDBOX)
		error_set(e, ERROR_NOT_FOUND, "there is no such snapshot build");
	else if (event && event->reason == OP_SANDBOX_ENDED)
		error_set(e, ERROR_NOT_FOUND, "the snapshot build has ended");
	return ANSWER_ERROR;
}

struct answer *build_answer(
	struct http_request *req, const struct answer_form *form, const char *id)
{
	struct answer *a = answer_new(req, form);
	a->call.sandbox = id ? id : "";
	a->call.wants_metadata = BUILD_MARK;
	return a;
}

static void build_unpack(struct http_request *req, const char *id)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.put = uploaded_put,
		.fail = build_fail};
	archive_unpack(build_answer(req, &form, id), AGENTUITY_HOME);
}

static void agentuity_builds_handle_upload(struct http_request *req)
{
	build_unpack(req, agentuity_bare_id(http_param(req, "snapshot"), "snp_"));
}

static void handle_upload_by_token(struct http_request *req)
{
	char id[ID_SIZE], mark[AUTH_MARK_SIZE];
	struct error e;
	const struct auth *auth = server_of(req)->auth;
	bool known = auth_open_token(auth, TOKEN_KIND, http_param(req, "token"), id, mark);
	if (known && auth_admit_mark(auth, req, mark, &e) < 0)
		http_respond_error(req, &e);
	else
		build_unpack(req, known ? id : NULL);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/snapshots/build", handle_begin, AGENTUITY_BODY_LIMIT},
	{HTTP_PUT, "/snapshots/{snapshot}/upload", agentuity_builds_handle_upload, UPLOAD_MAX,
		.streams_body = true},
};

static const struct http_route open_routes[] = {
	{HTTP_PUT, "/upload/{token}", handle_upload_by_token, UPLOAD_MAX, .streams_body = true},
};

const struct route_table agentuity_build_table = ROUTE_TABLE(routes);
const struct route_table agentuity_upload_table = ROUTE_TABLE(open_routes);
