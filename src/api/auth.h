/*
 * Who is calling. A key is "bnk_" or "e2b_" and a body; only a hash of the body is kept, and
 * looking one up compares with every key, in constant time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define AUTH_HASH_SIZE 32
#define AUTH_KEY_SIZE  64

struct auth;
struct http_request;

struct auth *auth_new(void);
void auth_free(struct auth *a);
/* Nobody needs a key: everybody is the tenant `default`. */
void auth_disable(struct auth *a);
bool auth_is_disabled(const struct auth *a);
void auth_add(struct auth *a, const char *tenant, const uint8_t hash[AUTH_HASH_SIZE]);

/* A new random key, to be shown once. */
void auth_generate_key(char out[AUTH_KEY_SIZE]);
/* false: no key looks like this. */
bool auth_hash_key(const char *key, uint8_t hash[AUTH_HASH_SIZE]);

/* The tenant whose key it is; NULL: nobody's. */
const char *auth_find(const struct auth *a, const char *key);
