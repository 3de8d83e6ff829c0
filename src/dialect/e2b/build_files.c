/*
 * Files for COPY. A client asks under their hash whether they are here; if not, it is given a URL
 * to put them to, as a tar archive. It does so without its key, so that the URL is signed: it is
 * good for one tenant, one hash and an hour.
 */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dialect/e2b/templates.h"

#define UPLOAD_KIND "e2b upload"
#define UPLOAD_S    3600

/* What is signed: nothing in it can be moved to another field. */
static void sign_upload(const struct server *d, const char *tenant, const char *hash,
	const char *expires, char out[AUTH_SIGNATURE_SIZE])
{
	autobuf text = {0};
	buf_printf(&text, "%s/%s/%s", hash, expires, tenant);
	buf_append_char(&text, '\0');
	auth_sign(d->auth, UPLOAD_KIND, text.failed ? "" : text.data, out);
}

static bool is_hash(const char *text)
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

/* As the client called us: whatever it says there, it only sends its own files there. */
static void make_url(const struct http_request *req, const char *hash, struct buf *out)
{
	char expires[24], signature[AUTH_SIGNATURE_SIZE];
	const char *host = http_header(req, "host"), *proto = http_header(req, "x-forwarded-proto");
	snprintf(expires, sizeof expires, "%lld", (long long)(clock_wall_ms() / 1000 + UPLOAD_S));
	sign_upload(server_of(req), tenant_of(req), hash, expires, signature);
	buf_append_str(out, proto && strcmp(proto, "https") == 0 ? "https://" : "http://");
	buf_append_str(out, host ? host : "localhost");
	buf_append_str(out, "/templates/uploads/");
	buf_append_str(out, hash);
	buf_append_str(out, "?expires=");
	buf_append_str(out, expires);
	buf_append_str(out, "&signature=");
	buf_append_str(out, signature);
	buf_append_str(out, "&tenant=");
	append_escaped(out, tenant_of(req));
	buf_append_char(out, '\0');
}

static void handle_ask(struct http_request *req)
{
	struct error e;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	autobuf url = {0};
	const char *hash = http_param(req, "hash");
	if (!e2b_template(req))
		return;
	if (!is_hash(hash)) {
		error_set_field(&e, ERROR_INVALID_FIELD, "hash",
			"a hash has %d digits of lower case hexadecimal", CONTEXT_HASH_LEN);
		http_respond_error(req, &e);
		return;
	}
	bool present = context_exists(server_of(req)->box, tenant_of(req), hash);
	json_begin_object(&w);
	json_put_bool(&w, "present", present);
	make_url(req, hash, &url);
	if (!url.failed)
		json_put_string(&w, "url", url.data);
	json_end_object(&w);
	e2b_respond_json(req, 201, &body);
}

static const struct http_route ask_routes[] = {
	{HTTP_GET, "/templates/{id}/files/{hash}", handle_ask, 0},
};

const struct route_table e2b_build_files_table = ROUTE_TABLE(ask_routes);

/* ---- taking it ---- */

struct upload {
	struct http_request *req;
	struct context_upload *context; /* NULL once it has ended */
};

static void upload_free(struct upload *u)
{
	if (u->context)
		context_abort(u->context);
	free(u);
}

static void upload_fail(struct upload *u, const struct error *e)
{
	struct http_request *req = u->req;
	upload_free(u);
	http_respond_error(req, e);
}

static void body_data(void *arg, const char *data, size_t len)
{
	struct upload *u = arg;
	struct error e = {0};
	if (context_write(u->context, data, len, &e) < 0)
		upload_fail(u, &e);
}

static void body_end(void *arg)
{
	struct upload *u = arg;
	struct http_request *req = u->req;
	struct error e = {0};
	if (context_end(take_ptr(u->context), &e) < 0) {
		upload_fail(u, &e);
		return;
	}
	upload_free(u);
	e2b_respond_nothing(req, 200);
}

static void body_aborted(void *arg)
{
	upload_free(arg);
}

int e2b_admit_upload(struct http_request *req, struct error *e)
{
	char real[AUTH_SIGNATURE_SIZE];
	const char *hash = http_param(req, "hash"), *tenant = http_query(req, "tenant");
	const char *expires = http_query(req, "expires"), *given = http_query(req, "signature");
	if (!tenant || !expires || !given || !is_hash(hash) || strlen(given) != sizeof real - 1)
		return error_set(e, ERROR_UNAUTHORIZED, "the URL is not one that was given out");
	sign_upload(server_of(req), tenant, hash, expires, real);
	if (sodium_memcmp(given, real, sizeof real) != 0)
		return error_set(e, ERROR_UNAUTHORIZED, "the URL is not one that was given out");
	if (strtoll(expires, NULL, 10) < clock_wall_ms() / 1000)
		return error_set(e, ERROR_UNAUTHORIZED, "the URL is too old");
	return 0;
}

static void handle_upload(struct http_request *req)
{
	struct error e = {0};
	struct upload *u = calloc(1, sizeof *u);
	const struct http_body_sink sink = {body_data, body_end, body_aborted, u};
	if (!u)
		abort();
	u->req = req;
	/* The hash is of the files, not of the archive that they came in. */
	if (context_begin(server_of(req)->box, http_query(req, "tenant"), http_param(req, "hash"),
		    false, &u->context, &e) < 0) {
		upload_fail(u, &e);
		return;
	}
	http_on_abort(req, body_aborted, u);
	http_body_stream(req, &sink);
}

static const struct http_route upload_routes[] = {
	{HTTP_PUT, "/templates/uploads/{hash}", handle_upload, UINT64_MAX, true},
};

const struct route_table e2b_upload_table = ROUTE_TABLE(upload_routes);
