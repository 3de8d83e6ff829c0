#include "dialect/e2b/access.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "dialect/e2b/search.h"
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

void e2b_token(const struct http_request *req, const char *id, char out[AUTH_TOKEN_SIZE])
{
	auth_make_token(server_of(req)->auth, auth_mark(req), TOKEN_KIND, id, out);
}

bool e2b_has_token(const struct http_request *req, const char *id, char mark[AUTH_MARK_SIZE])
{
	char opened[ID_SIZE];
	const char *token = http_header(req, "x-access-token");
	return token && auth_open_token(server_of(req)->auth, TOKEN_KIND, token, opened, mark) &&
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

struct signature_search {
	const struct server *server;
	struct signed_request request;
	const char *id;            /* of the sandbox whose tokens are tried */
	char mark[AUTH_MARK_SIZE]; /* of the one that was found */
};

static bool is_signed_by(void *arg, const char *mark)
{
	struct signature_search *search = arg;
	const struct signed_request *r = &search->request;
	char token[AUTH_TOKEN_SIZE];
	uint8_t real[crypto_hash_sha256_BYTES];
	crypto_hash_sha256_state state = r->begun;
	auth_make_token(search->server->auth, mark, TOKEN_KIND, search->id, token);
	access_hash_text(&state, token);
	if (r->expires) {
		access_hash_text(&state, ":");
		access_hash_text(&state, r->expires);
	}
	crypto_hash_sha256_final(&state, real);
	if (sodium_memcmp(r->signature, real, sizeof real) != 0)
		return false;
	memcpy(search->mark, mark, AUTH_MARK_SIZE);
	return true;
}

/* Each key of the tenant has a token of its own for the sandbox. */
static bool is_signed_for(void *arg, const char *id, const char *tenant)
{
	struct signature_search *search = arg;
	search->id = id;
	return auth_search_marks(search->server->auth, tenant, is_signed_by, search);
}

/*
 * No index can do this: the signature is a hash of the token together with the path, so that only
 * whoever tries a token can tell whether it is the one. Each costs two short hashes, and each
 * sandbox has one for every key of its tenant that was ever used. What that may cost: search.h.
 */
static int find_by_signature(struct http_request *req, char id[ID_SIZE], struct error *e)
{
	const struct service *service = service_of(req);
	struct signature_search search = {.server = service->server};
	if (begin_signed_request(req, &search.request) < 0)
		return 0;
	return e2b_search(service->own, service->server->ops, req, is_signed_for, &search, id, e);
}

int e2b_find_destination(struct http_request *req, struct error *e)
{
	const char *token = http_header(req, "x-access-token");
	char mark[AUTH_MARK_SIZE];
	struct http_destination found = {.port = E2B_ENVD_PORT};
	if (http_destination(req))
		return 0;
	int r = token ? auth_open_token(server_of(req)->auth, TOKEN_KIND, token, found.id, mark)
		      : find_by_signature(req, found.id, e);
	if (r < 0)
		return -1;
	if (r == 0)
		return error_set(e, ERROR_UNAUTHORIZED,
			"the request names no sandbox: it has no E2b-Sandbox-Id, no access token and no valid signature");
	memcpy(found.name, found.id, ID_SIZE);
	http_set_destination(req, &found);
	return 0;
}

static bool is_expired(const char *expires)
{
	size_t len = strlen(expires);
	if (len == 0 || len > EXPIRES_DIGITS_MAX || strspn(expires, "0123456789") != len)
		return true;
	return strtoll(expires, NULL, 10) < clock_wall_ms() / 1000;
}

static int e2b_check_signature(
	const struct http_request *req, const char *id, char mark[AUTH_MARK_SIZE], struct error *e)
{
	const struct server *d = server_of(req);
	struct signature_search search = {.server = d};
	const char *tenant = op_tenant_of(d->ops, id);
	if (!tenant || begin_signed_request(req, &search.request) < 0 ||
		!is_signed_for(&search, id, tenant))
		return error_set(e, ERROR_UNAUTHORIZED, "invalid signature");
	if (search.request.expires && is_expired(search.request.expires))
		return error_set(e, ERROR_UNAUTHORIZED, "signature is already expired");
	memcpy(mark, search.mark, AUTH_MARK_SIZE);
	return 0;
}

int e2b_check_file_access(
	const struct http_request *req, const char *id, char mark[AUTH_MARK_SIZE], struct error *e)
{
	if (http_header(req, "x-access-token")) {
		if (e2b_has_token(req, id, mark))
			return 0;
		return error_set(
			e, ERROR_UNAUTHORIZED, "access token present in header but does not match");
	}
	if (!http_query(req, "signature"))
		return error_set(e, ERROR_UNAUTHORIZED, "missing signature query parameter");
	return e2b_check_signature(req, id, mark, e);
}
