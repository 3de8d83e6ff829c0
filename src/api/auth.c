#include "api/auth.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	struct auth_key *keys;
};

struct auth *auth_new(void)
{
	struct auth *a = calloc(1, sizeof *a);
	if (!a || sodium_init() < 0)
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

void auth_add(struct auth *a, const char *tenant, const uint8_t hash[AUTH_HASH_SIZE])
{
	struct auth_key *key = calloc(1, sizeof *key);
	if (!key || !(key->tenant = strdup(tenant)))
		abort();
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
static const char *key_body(const char *key)
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
	const char *body = key_body(key);
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
