#include "http/auth.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "http/http.h"

#define KEY_BODY_MIN 16
#define KEY_BODY_MAX 128

static const char *const prefixes[] = {"bnk_", "e2b_"};

struct auth_key {
	struct auth_key *next;
	char *tenant;
	uint8_t hash[AUTH_HASH_SIZE];
};

struct auth {
	bool disabled;
	uint8_t secret[AUTH_SECRET_SIZE];
	struct auth_key *keys;
};

struct auth *auth_new(void)
{
	struct auth *a = mem_new(sizeof *a);
	if (sodium_init() < 0)
		abort();
	return a;
}

void auth_free(struct auth *a)
{
	while (a->keys) {
		struct auth_key *key = a->keys;
		a->keys = key->next;
		free(key->tenant);
		free(key);
	}
	free(a);
}

void auth_disable(struct auth *a)
{
	a->disabled = true;
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

void auth_make_token(
	const struct auth *a, const char *kind, const char *id, char out[AUTH_TOKEN_SIZE])
{
	memcpy(out, id, ID_LEN);
	make_mac(a, kind, id, ID_LEN, out + ID_LEN);
}

bool auth_open_token(const struct auth *a, const char *kind, const char *token, char id[ID_SIZE])
{
	char real[AUTH_TOKEN_SIZE];
	if (strnlen(token, AUTH_TOKEN_SIZE) != AUTH_TOKEN_SIZE - 1)
		return false;
	auth_make_token(a, kind, token, real);
	if (sodium_memcmp(real, token, AUTH_TOKEN_SIZE) != 0)
		return false;
	memcpy(id, token, ID_LEN);
	id[ID_LEN] = '\0';
	return id_is_valid(id);
}

void auth_add(struct auth *a, const char *tenant, const uint8_t hash[AUTH_HASH_SIZE])
{
	struct auth_key *key = mem_new(sizeof *key);
	key->tenant = mem_copy_text(tenant);
	memcpy(key->hash, hash, AUTH_HASH_SIZE);
	key->next = a->keys;
	a->keys = key;
}

void auth_generate_key(char out[AUTH_KEY_SIZE])
{
	uint8_t random[20];
	char hex[sizeof random * 2 + 1];
	randombytes_buf(random, sizeof random);
	sodium_bin2hex(hex, sizeof hex, random, sizeof random);
	snprintf(out, AUTH_KEY_SIZE, "bnk_%s", hex);
}

/* The body behind any of our prefixes; a key may also be given without one. */
static const char *auth_key_body(const char *key)
{
	for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
		if (strncmp(key, prefixes[i], strlen(prefixes[i])) == 0)
			return key + strlen(prefixes[i]);
	return key;
}

bool auth_hash_key(const char *key, uint8_t hash[AUTH_HASH_SIZE])
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	const char *body = auth_key_body(key);
	size_t len = strnlen(body, KEY_BODY_MAX + 1);
	if (len < KEY_BODY_MIN || len > KEY_BODY_MAX || strspn(body, allowed) != len)
		return false;
	crypto_generichash(hash, AUTH_HASH_SIZE, (const uint8_t *)body, len, NULL, 0);
	return true;
}

const char *auth_find(const struct auth *a, const char *key)
{
	uint8_t hash[AUTH_HASH_SIZE];
	const char *found = NULL;
	if (a->disabled)
		return "default";
	if (!key || !auth_hash_key(key, hash))
		return NULL;
	for (const struct auth_key *k = a->keys; k; k = k->next)
		if (sodium_memcmp(k->hash, hash, AUTH_HASH_SIZE) == 0)
			found = k->tenant;
	return found;
}

/* Without keys, the Host check is the only defence against DNS rebinding by web pages. */
static bool is_loopback_host(const char *host)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
	size_t len = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strlen(names[i]) == len && strncasecmp(names[i], host, len) == 0)
			return true;
	return strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == len;
}

int auth_admit(const struct auth *a, struct http_request *req, struct error *e)
{
	const char *key = http_header(req, "x-api-key");
	const char *authorization = http_header(req, "authorization");
	if (authorization && strncasecmp(authorization, "Bearer ", 7) == 0)
		key = authorization + 7;
	const char *host = http_header(req, "host");
	if (auth_is_disabled(a) && host && !is_loopback_host(host))
		return error_set(e, ERROR_UNAUTHORIZED,
			"without keys, this server answers only to the name of the loopback interface");
	const char *tenant = auth_find(a, key);
	if (!tenant)
		return error_set(e, ERROR_UNAUTHORIZED,
			"a valid API key is needed, as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'");
	http_set_principal(req, (void *)(uintptr_t)tenant);
	return 0;
}
