/*
 * Who is calling. A key is "bnk_" or "e2b_" and a body; only a hash of the body is kept, and
 * looking one up compares with every key, in constant time.
 *
 * A token opens one thing, such as one sandbox's files, for whoever holds it. It names the thing,
 * by its id, and proves by a MAC under the server's secret that this server made it. Nothing of it
 * is kept.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"

#define AUTH_HASH_SIZE      32
#define AUTH_KEY_SIZE       64
#define AUTH_SECRET_SIZE    32
#define AUTH_SIGNATURE_SIZE (48 + 1)
#define AUTH_TOKEN_SIZE     (ID_LEN + 48 + 1)

struct auth;
struct http_request;

struct auth *auth_new(void);
void auth_free(struct auth *a);
/* Disables keys: every caller is the tenant `default`. */
void auth_disable(struct auth *a);
bool auth_is_disabled(const struct auth *a);
void auth_add(struct auth *a, const char *tenant, const uint8_t hash[AUTH_HASH_SIZE]);

/* Sets the secret that tokens are made with; before that no token is valid. */
void auth_set_secret(struct auth *a, const uint8_t secret[AUTH_SECRET_SIZE]);
/* The same for the same thing, always. A token of one kind is none of another. */
void auth_make_token(
	const struct auth *a, const char *kind, const char *id, char out[AUTH_TOKEN_SIZE]);
/* The MAC alone, of any text: for URLs that are signed. */
void auth_sign(
	const struct auth *a, const char *kind, const char *text, char out[AUTH_SIGNATURE_SIZE]);
/* Fills id with the object the token opens. Returns false if the token is not valid. */
bool auth_open_token(const struct auth *a, const char *kind, const char *token, char id[ID_SIZE]);

/* A new random key, to be shown once. */
void auth_generate_key(char out[AUTH_KEY_SIZE]);
/* false: no key looks like this. */
bool auth_hash_key(const char *key, uint8_t hash[AUTH_HASH_SIZE]);

/* Returns the tenant that owns the key, or NULL. */
const char *auth_find(const struct auth *a, const char *key);
/* For a mount's admit: the tenant becomes the request's principal. */
int auth_admit(const struct auth *a, struct http_request *req, struct error *e);
