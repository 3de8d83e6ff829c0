/*
 * Files for COPY. A client asks under their hash whether they are here; if not, it is given a URL
 * to put them to, as a tar archive. It does so without its key, so that the URL is signed: it is
 * good for one tenant, one hash and an hour, and no longer than the key that asked for it.
 */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/own_url.h"
#include "base/clock.h"
#include "dialect/e2b/templates.h"
#include "op/build.h"

#define UPLOAD_KIND "e2b upload"
#define UPLOAD_S    3600

/* What is signed: nothing in it can be moved to another field. */
static void sign_upload(const struct server *d, const char *tenant, const char *mark,
	const char *hash, const char *expires, char out[AUTH_SIGNATURE_SIZE])
{
	autobuf text = {0};
	buf_printf(&text, "%s/%s/%s/%s", hash, expires, mark, tenant);
	buf_append_char(&text, '\0');
	auth_sign(d->auth, UPLOAD_KIND, text.failed ? "" : text.data, out);
}

static bool build_files_is_hash(const char *text)
{
	return strlen(text) == CONTEXT_HASH_LEN &&
	       strspn(text, "0123456789abcdef") == CONTEXT_HASH_LEN;
}

/* ---- is it here? ---- */

static void append_escaped(struct buf *out, const char *text)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	for (; *text; text++) {
		if (strchr(plain, *text))
			buf_append_char(out, *text);
		else
			buf_printf(out, "%%%02X", (unsigned char)*text);
	}
}

static void make_url(const struct http_request *req, const char *hash, struct buf *out)
{
	char expires[24], signature[AUTH_SIGNATURE_SIZE];
	snprintf(expires, sizeof expires, "%lld", (long long)(clock_wall_ms() / 1000 + UPLOAD_S));
	sign_upload(server_of(req), tenant_of(req), auth_mark(req), hash, expires, signature);
	own_url_append(out, req);
	buf_append_str(out, "/templates/uploads/");
	buf_append_str(out, hash);
	buf_append_str(out, "?expires=");
	buf_append_str(out, expires);
	buf_append_str(out, "&signature=");
	buf_append_str(out, signature);
	buf_append_str(out, "&key=");
	buf_append_str(out, auth_mark(req));
	buf_append_str(out, "&tenant=");
	append_escaped(out, tenant_of(req));
	buf_append_char(out, '\0');
}

static void build_files_put(struct answer *a, bool present)
{
	struct json_writer w = {.out = &a->out};
	autobuf url = {0};
	json_begin_object(&w);
	json_put_bool(&w, "present", present);
	make_url(a->req, http_param(a->req, "hash"), &url);
	if (!url.failed)
		json_put_string(&w, "url", url.data);
	json_end_object(&w);
	a->status = 201;
}

static int build_files_found(struct answer *a, const struct op_event *event, struct error *e)
{
	(void)event;
	(void)e;
	build_files_put(a, true);
	return 0;
}

static enum answer_failure build_files_missing(
	struct answer *a, struct error *e, const struct op_event *event)
{
	(void)event;
	if (e->code != ERROR_NOT_FOUND)
		return ANSWER_ERROR;
	build_files_put(a, false);
	return ANSWER_PUT;
}

static void handle_build_files_ask(struct http_request *req)
{
	static const struct answer_form form = {.type = E2B_JSON,
		.pace = ANSWER_WHOLE,
		.put = build_files_found,
		.fail = build_files_missing};
	struct error e;
	struct answer *a = answer_new(req, &form);
	const struct op_build_files request = {
		.hash = http_param(req, "hash"), .template_name = http_param(req, "id")};
	if (!build_files_is_hash(request.hash)) {
		error_set_field(&e, ERROR_INVALID_FIELD, "hash",
			"a hash has %d digits of lower case hexadecimal", CONTEXT_HASH_LEN);
		answer_refuse(a, &e);
		return;
	}
	a->op = op_build_files_find(&a->call, &request);
	answer_run(a);
}

static const struct http_route ask_routes[] = {
	{HTTP_GET, "/templates/{id}/files/{hash}", handle_build_files_ask, 0,
		.scope = HTTP_SCOPE_USE},
};

const struct route_table e2b_build_files_table = ROUTE_TABLE(ask_routes);

/* ---- taking it ---- */

int e2b_admit_upload(struct http_request *req, struct error *e)
{
	char real[AUTH_SIGNATURE_SIZE];
	const char *hash = http_param(req, "hash"), *tenant = http_query(req, "tenant");
	const char *expires = http_query(req, "expires"), *given = http_query(req, "signature");
	const char *mark = http_query(req, "key");
	if (!tenant || !mark || !expires || !given || !build_files_is_hash(hash) ||
		strlen(given) != sizeof real - 1)
		return error_set(e, ERROR_UNAUTHORIZED, "the URL is not one that was given out");
	sign_upload(server_of(req), tenant, mark, hash, expires, real);
	if (sodium_memcmp(given, real, sizeof real) != 0)
		return error_set(e, ERROR_UNAUTHORIZED, "the URL is not one that was given out");
	if (strtoll(expires, NULL, 10) < clock_wall_ms() / 1000)
		return error_set(e, ERROR_UNAUTHORIZED, "the URL is too old");
	return auth_admit_mark(server_of(req)->auth, req, mark, e);
}

/* The tenant is the one whose URL was signed. */
static void handle_build_files_upload(struct http_request *req)
{
	struct answer *a = answer_new(req, &e2b_nothing_form);
	/* The hash is of the files, not of the archive that they came in. */
	const struct op_build_files request = {
		.hash = http_param(req, "hash"), .announced = http_content_length(req)};
	a->call.tenant = http_query(req, "tenant");
	a->op = op_build_files_store(&a->call, &request);
	answer_run_with_body(a, &answer_body_file);
}

static const struct http_route upload_routes[] = {
	{HTTP_PUT, "/templates/uploads/{hash}", handle_build_files_upload, UINT64_MAX, true},
};

const struct route_table e2b_upload_table = ROUTE_TABLE(upload_routes);
