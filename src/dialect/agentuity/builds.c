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

#include "box/sandbox/sandbox.h"
#include "answer/json_body.h"
#include "dialect/agentuity/archives.h"
#include "dialect/agentuity/builds.h"
#include "dialect/agentuity/create.h"
#include "op/life.h"

#define TOKEN_KIND "agentuity-upload"
#define MARK       "agentuitySnapshotBuild"
#define UPLOAD_MAX (UINT64_C(1) << 40)

/* ---- begin ---- */

struct build_body {
	const char *runtime, *name, *tag, *description;
	bool is_public;
};

#define AT(member) offsetof(struct build_body, member)

static const struct json_field build_fields[] = {
	{"runtime", JSON_STRING, AT(runtime), JSON_REQUIRED | JSON_NOT_EMPTY, 0, 256},
	{"name", JSON_STRING, AT(name), 0, 0, 128},
	{"tag", JSON_STRING, AT(tag), 0, 0, 128},
	{"description", JSON_STRING, AT(description), 0, 0, 1024},
	{"public", JSON_BOOL, AT(is_public), 0, 0, 0},
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
	json_key(&w, MARK);
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
	auth_make_token(server_of(req)->auth, TOKEN_KIND, id, token);
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

void build_respond_missing(struct http_request *req)
{
	struct error e;
	error_set(&e, ERROR_NOT_FOUND, "there is no such snapshot build");
	http_respond_error(req, &e);
}

cJSON *build_of(const struct sandbox *s)
{
	struct sandbox_view view;
	struct error e;
	cJSON *tree = NULL;
	sandbox_view(s, &view);
	if (json_parse(view.metadata, strlen(view.metadata), &tree, &e) < 0)
		return NULL;
	cJSON *build = cJSON_DetachItemFromObjectCaseSensitive(tree, MARK);
	cJSON_Delete(tree);
	return build;
}

static void agentuity_builds_unpack(struct http_request *req, struct sandbox *s)
{
	static const struct answer_form form = {
		.type = "application/json", .pace = ANSWER_WHOLE, .put = uploaded_put};
	struct sandbox_view view;
	cJSON *build = s ? build_of(s) : NULL;
	if (build) {
		struct answer *a = answer_new(req, &form);
		sandbox_view(s, &view);
		a->call.sandbox = http_copy(req, view.id);
		archive_unpack(a, AGENTUITY_HOME);
	} else {
		build_respond_missing(req);
	}
	cJSON_Delete(build);
}

struct sandbox *build_in_path(struct http_request *req)
{
	char id[ID_SIZE];
	return agentuity_parse_id(http_param(req, "snapshot"), "snp_", id)
		       ? sandbox_find(server_of(req)->box, tenant_of(req), id)
		       : NULL;
}

static void agentuity_builds_handle_upload(struct http_request *req)
{
	agentuity_builds_unpack(req, build_in_path(req));
}

static void handle_upload_by_token(struct http_request *req)
{
	char id[ID_SIZE];
	const struct server *d = server_of(req);
	bool known = auth_open_token(d->auth, TOKEN_KIND, http_param(req, "token"), id);
	agentuity_builds_unpack(req, known ? sandbox_find_any(d->box, id) : NULL);
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
