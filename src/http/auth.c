#include "http/auth.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "http/http.h"

/* Length of a token's names: an id, and the mark of a key. */
#define AUTH_NAMED_LEN (ID_LEN + AUTH_MARK_SIZE - 1)

struct auth {
	bool disabled;
	char *domain; /* without keys: of the names that sandboxes have */
	struct auth_keys keys;
	uint8_t secret[AUTH_SECRET_SIZE];
};

/* The principal that http_principal returns. */
struct auth_principal {
	enum http_scope scope;
	bool by_token;
	char mark[AUTH_MARK_SIZE];
	char tenant[];
};

static const struct auth_grant anybody = {"default", AUTH_NO_MARK, HTTP_SCOPE_ADMIN};
static const char *const scope_names[] = {
	[HTTP_SCOPE_READ] = "read", [HTTP_SCOPE_USE] = "use", [HTTP_SCOPE_ADMIN] = "admin"};

struct auth *auth_new(const struct auth_keys *keys)
{
	struct auth *a = mem_new(sizeof *a);
	int r = sodium_init();
	assert(r >= 0 && "libsodium finds the kernel's random numbers");
	(void)r;
	if (keys)
		a->keys = *keys;
	return a;
}

void auth_free(struct auth *a)
{
	free(a->domain);
	free(a);
}

void auth_disable(struct auth *a, const char *domain)
{
	a->disabled = true;
	a->domain = mem_copy_text_n(domain, strcspn(domain, ":"));
}

bool auth_is_disabled(const struct auth *a)
{
	return a->disabled;
}

void auth_set_secret(struct auth *a, const uint8_t secret[AUTH_SECRET_SIZE])
{
	memcpy(a->secret, secret, AUTH_SECRET_SIZE);
}

/* In hexadecimal. The kind's NUL keeps it apart from the text. */
static void make_mac(const struct auth *a, const char *kind, const char *text, size_t len,
	char out[AUTH_SIGNATURE_SIZE])
{
	uint8_t mac[(AUTH_SIGNATURE_SIZE - 1) / 2];
	crypto_generichash_state state;
	crypto_generichash_init(&state, a->secret, sizeof a->secret, sizeof mac);
	crypto_generichash_update(&state, (const uint8_t *)kind, strlen(kind) + 1);
	crypto_generichash_update(&state, (const uint8_t *)text, len);
	crypto_generichash_final(&state, mac, sizeof mac);
	sodium_bin2hex(out, AUTH_SIGNATURE_SIZE, mac, sizeof mac);
}

void auth_sign(
	const struct auth *a, const char *kind, const char *text, char out[AUTH_SIGNATURE_SIZE])
{
	make_mac(a, kind, text, strlen(text), out);
}

/* The MAC is of the id and the mark. */
void auth_make_token(const struct auth *a, const char *mark, const char *kind, const char *id,
	char out[AUTH_TOKEN_SIZE])
{
	memcpy(out, id, ID_LEN);
	memcpy(out + ID_LEN, mark, AUTH_MARK_SIZE - 1);
	make_mac(a, kind, out, AUTH_NAMED_LEN, out + AUTH_NAMED_LEN);
}

bool auth_open_token(const struct auth *a, const char *kind, const char *token, char id[ID_SIZE],
	char mark[AUTH_MARK_SIZE])
{
	char real[AUTH_SIGNATURE_SIZE];
	if (strnlen(token, AUTH_TOKEN_SIZE) != AUTH_TOKEN_SIZE - 1)
		return false;
	make_mac(a, kind, token, AUTH_NAMED_LEN, real);
	if (sodium_memcmp(real, token + AUTH_NAMED_LEN, sizeof real) != 0)
		return false;
	memcpy(id, token, ID_LEN);
	id[ID_LEN] = '\0';
	memcpy(mark, token + ID_LEN, AUTH_MARK_SIZE - 1);
	mark[AUTH_MARK_SIZE - 1] = '\0';
	return id_is_valid(id);
}

/* ---- without keys ---- */

static bool auth_has_suffix(const char *host, size_t len, const char *suffix)
{
	size_t n = strlen(suffix);
	return len > n + 1 && host[len - n - 1] == '.' &&
	       strncasecmp(host + len - n, suffix, n) == 0;
}

static bool is_loopback_name(const char *host, size_t len)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strlen(names[i]) == len && strncasecmp(names[i], host, len) == 0)
			return true;
	return strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == len;
}

/* Returns the length of NAME in "NAME[:PORT]". */
static size_t auth_name_len(const char *host)
{
	return host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
}

/*
 * "null" is that of pages that hide theirs. Names below localhost are those of sandboxes' pages,
 * which must not reach the API either.
 */
static bool is_loopback_origin(const char *origin)
{
	static const char *const schemes[] = {"http://", "https://"};
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		const char *host = origin + strlen(schemes[i]);
		if (strncasecmp(origin, schemes[i], strlen(schemes[i])) == 0)
			return is_loopback_name(host, auth_name_len(host));
	}
	return false;
}

/*
 * Any page that a local user opens can send requests to loopback. A browser says where they come
 * from (Origin, Sec-Fetch-Site), and by which name it found us (Host): a name of somebody else is
 * one that was made to lead here.
 */
int auth_guard_name(const struct auth *a, const struct http_request *req, struct error *e)
{
	const char *host = http_header(req, "host");
	size_t len = host ? auth_name_len(host) : 0;
	if (!a->disabled ||
		(host && (is_loopback_name(host, len) || auth_has_suffix(host, len, "localhost") ||
				 auth_has_suffix(host, len, a->domain))))
		return 0;
	return error_set(e, ERROR_UNAUTHORIZED,
		"without keys, this server answers only to the name of the loopback interface");
}

int auth_guard_site(const struct auth *a, const struct http_request *req, struct error *e)
{
	const char *origin = http_header(req, "origin"), *site = http_header(req, "sec-fetch-site");
	if (auth_guard_name(a, req, e) < 0)
		return -1;
	bool is_foreign = (origin && !is_loopback_origin(origin)) ||
			  (site && strcasecmp(site, "cross-site") == 0);
	if (!a->disabled || !is_foreign)
		return 0;
	return error_set(e, ERROR_UNAUTHORIZED,
		"without keys, this server does not answer to pages of other sites");
}

/* ---- who it is ---- */

static const char *auth_key_of(const struct http_request *req)
{
	const char *authorization = http_header(req, "authorization");
	if (authorization && strncasecmp(authorization, "Bearer ", 7) == 0)
		return authorization + 7;
	return http_header(req, "x-api-key");
}

/* Checks what the route needs, and attaches who it is: a copy, as the key may end before it. */
static int auth_let_in(
	struct http_request *req, const struct auth_grant *grant, bool by_token, struct error *e)
{
	enum http_scope needed = http_needed_scope(req);
	if (grant->scope < needed)
		return error_set(e, ERROR_SCOPE_MISSING,
			"this needs a key of the scope '%s'; the one that was sent has '%s'",
			scope_names[needed], scope_names[grant->scope]);
	size_t size = strlen(grant->tenant) + 1;
	struct auth_principal *p = http_alloc(req, sizeof *p + size);
	if (!p)
		return error_set(e, ERROR_RESOURCE_EXHAUSTED, "out of memory");
	p->scope = grant->scope;
	p->by_token = by_token;
	memcpy(p->mark, grant->mark, AUTH_MARK_SIZE);
	memcpy(p->tenant, grant->tenant, size);
	http_set_principal(req, p);
	return 0;
}

int auth_admit(const struct auth *a, struct http_request *req, struct error *e)
{
	struct auth_grant grant = anybody;
	const char *key = auth_key_of(req);
	int r = 0;
	if (!a->disabled)
		r = key ? a->keys.admit(a->keys.arg, key, &grant) : -ENOENT;
	if (r == -EKEYEXPIRED)
		return error_set(e, ERROR_UNAUTHORIZED, "the API key has expired");
	if (r < 0)
		return error_set(e, ERROR_UNAUTHORIZED,
			"a valid API key is needed, as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'");
	return auth_let_in(req, &grant, false, e);
}

int auth_admit_mark(
	const struct auth *a, struct http_request *req, const char *mark, struct error *e)
{
	struct auth_grant grant = anybody;
	if (!a->disabled && a->keys.admit_mark(a->keys.arg, mark, &grant) < 0)
		return error_set(
			e, ERROR_UNAUTHORIZED, "the API key that this was made for has ended");
	return auth_let_in(req, &grant, true, e);
}

bool auth_search_marks(const struct auth *a, const char *tenant,
	bool (*matches)(void *arg, const char *mark), void *arg)
{
	if (a->disabled)
		return matches(arg, AUTH_NO_MARK);
	return a->keys.search_marks(a->keys.arg, tenant, matches, arg);
}

const char *auth_tenant(const struct http_request *req)
{
	const struct auth_principal *p = http_principal(req);
	return p && !p->by_token ? p->tenant : NULL;
}

const char *auth_mark(const struct http_request *req)
{
	const struct auth_principal *p = http_principal(req);
	return p ? p->mark : AUTH_NO_MARK;
}

bool auth_may(const struct http_request *req, enum http_scope scope)
{
	const struct auth_principal *p = http_principal(req);
	return p && p->scope >= scope;
}

bool auth_is_marked(void *mark, const void *principal)
{
	const struct auth_principal *p = principal;
	return strcmp(p->mark, mark) == 0;
}
