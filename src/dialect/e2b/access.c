#include "dialect/e2b/access.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "op/admission.h"

#define TOKEN_KIND         "e2b envd"
#define EXPIRES_DIGITS_MAX 15

bool e2b_asks_for_sandbox(const struct http_request *req)
{
	static const char headers[] = "access-control-request-headers";
	return http_is_preflight(req) &&
	       (http_header_has_token(req, headers, "e2b-sandbox-id") ||
		       http_header_has_token(req, headers, "x-access-token"));
}

/* ---- tokens ---- */

void e2b_token(const struct server *d, const char *id, char out[AUTH_TOKEN_SIZE])
{
	auth_make_token(d->auth, TOKEN_KIND, id, out);
}

bool e2b_has_token(const struct server *d, const struct http_request *req, const char *id)
{
	char opened[ID_SIZE];
	const char *token = http_header(req, "x-access-token");
	return token && auth_open_token(d->auth, TOKEN_KIND, token, opened) &&
	       strcmp(opened, id) == 0;
}

/* ---- signatures ---- */

struct signed_request {
	uint8_t signature[crypto_hash_sha256_BYTES];
	const char *expires;            /* NULL: never */
	crypto_hash_sha256_state begun; /* the hash of all that comes before the token */
};

static void access_hash_text(crypto_hash_sha256_state *state, const char *text)
{
	crypto_hash_sha256_update(state, (const unsigned char *)text, strlen(text));
}

/* "v1_" and the hash of path:operation:user:token[:expires] in base64 without its '='. */
static bool parse_signature(const char *text, uint8_t out[crypto_hash_sha256_BYTES])
{
	size_t len = strlen(text), decoded;
	const char *end;
	return len > 3 && strncmp(text, "v1_", 3) == 0 &&
	       sodium_base642bin(out, crypto_hash_sha256_BYTES, text + 3, len - 3, NULL, &decoded,
		       &end, sodium_base64_VARIANT_ORIGINAL_NO_PADDING) == 0 &&
	       !*end && decoded == crypto_hash_sha256_BYTES;
}

/* -1 when there is no signature that could be anybody's. */
static int begin_signed_request(const struct http_request *req, struct signed_request *ret)
{
	const char *path = http_query(req, "path"), *user = http_query(req, "username");
	const char *signature = http_query(req, "signature");
	*ret = (struct signed_request){.expires = http_query(req, "signature_expiration")};
	if (!signature || !parse_signature(signature, ret->signature))
		return -1;
	crypto_hash_sha256_init(&ret->begun);
	access_hash_text(&ret->begun, path ? path : "");
	access_hash_text(&ret->begun, http_method(req) == HTTP_POST ? ":write:" : ":read:");
	access_hash_text(&ret->begun, user ? user : "");
	access_hash_text(&ret->begun, ":");
	return 0;
}

static bool signature_is_of(
	const struct server *d, const struct signed_request *r, const char *sandbox_id)
{
	char token[AUTH_TOKEN_SIZE];
	uint8_t real[crypto_hash_sha256_BYTES];
	crypto_hash_sha256_state state = r->begun;
	e2b_token(d, sandbox_id, token);
	access_hash_text(&state, token);
	if (r->expires) {
		access_hash_text(&state, ":");
		access_hash_text(&state, r->expires);
	}
	crypto_hash_sha256_final(&state, real);
	return sodium_memcmp(r->signature, real, sizeof real) == 0;
}

struct signature_search {
	const struct server *server;
	struct signed_request request;
};

static bool is_signed_for(void *arg, const char *id)
{
	const struct signature_search *search = arg;
	return signature_is_of(search->server, &search->request, id);
}

/*
 * No index can do this: the signature is a hash of the token together with the path, so that only
 * whoever tries a token can tell whether it is the one. Each costs two short hashes.
 */
static bool find_by_signature(
	const struct server *d, const struct http_request *req, char id[ID_SIZE])
{
	struct signature_search search = {.server = d};
	return begin_signed_request(req, &search.request) == 0 &&
	       op_find_matching(d->ops, is_signed_for, &search, id);
}

bool e2b_find_destination(const struct server *d, struct http_request *req)
{
	const char *token = http_header(req, "x-access-token");
	struct http_destination found = {.port = E2B_ENVD_PORT};
	if (http_destination(req))
		return true;
	if (token ? !auth_open_token(d->auth, TOKEN_KIND, token, found.id)
		  : !find_by_signature(d, req, found.id))
		return false;
	memcpy(found.name, found.id, ID_SIZE);
	http_set_destination(req, &found);
	return true;
}

static bool is_expired(const char *expires)
{
	size_t len = strlen(expires);
	if (len == 0 || len > EXPIRES_DIGITS_MAX || strspn(expires, "0123456789") != len)
		return true;
	return strtoll(expires, NULL, 10) < clock_wall_ms() / 1000;
}

int e2b_check_file_access(
	const struct server *d, const struct http_request *req, const char *id, struct error *e)
{
	struct signed_request r;
	if (http_header(req, "x-access-token")) {
		if (e2b_has_token(d, req, id))
			return 0;
		return error_set(
			e, ERROR_UNAUTHORIZED, "access token present in header but does not match");
	}
	if (!http_query(req, "signature"))
		return error_set(e, ERROR_UNAUTHORIZED, "missing signature query parameter");
	if (begin_signed_request(req, &r) < 0 || !signature_is_of(d, &r, id))
		return error_set(e, ERROR_UNAUTHORIZED, "invalid signature");
	if (r.expires && is_expired(r.expires))
		return error_set(e, ERROR_UNAUTHORIZED, "signature is already expired");
	return 0;
}
