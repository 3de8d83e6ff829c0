/*
 * Who is calling, and whether the route is for them. What a key is, and which there are, is the
 * business of whoever fills in struct auth_keys. Here, and nowhere else, the scope of a key is held
 * against what a route needs.
 *
 * A token opens one thing, such as one sandbox's files, for whoever holds it. It names the thing,
 * by its id, and the key that it was made for, by a mark, and proves by a MAC under the server's
 * secret that this server made it. It has the scope of that key and ends with it. Nothing of it is
 * kept.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "http/http.h"

#define AUTH_MARK_SIZE      (16 + 1)
#define AUTH_NO_MARK        "0000000000000000" /* of everybody, without keys */
#define AUTH_SECRET_SIZE    32
#define AUTH_SIGNATURE_SIZE (48 + 1)
#define AUTH_TOKEN_SIZE     (ID_LEN + 16 + 48 + 1)

struct auth;

/* The rights that a key gives to its holder. */
struct auth_grant {
	const char *tenant;
	const char *mark; /* of what was sent: ends with it */
	enum http_scope scope;
};

struct auth_keys {
	/* Returns -ENOENT if there is no such key, -EKEYEXPIRED if its time is over. */
	int (*admit)(void *arg, const char *key, struct auth_grant *ret);
	/* Admits by the mark of a key. */
	int (*admit_mark)(void *arg, const char *mark, struct auth_grant *ret);
	/* Calls with the marks of a tenant's keys until one matches. */
	bool (*search_marks)(void *arg, const char *tenant,
		bool (*matches)(void *match_arg, const char *mark), void *match_arg);
	void *arg;
};

/* keys: NULL if there are none. */
struct auth *auth_new(const struct auth_keys *keys);
void auth_free(struct auth *a);
/* Disables keys: every caller is an admin of the tenant `default`. domain: of sandboxes' names. */
void auth_disable(struct auth *a, const char *domain);
bool auth_is_disabled(const struct auth *a);

/* Sets the secret that tokens are made with; before that no token is valid. */
void auth_set_secret(struct auth *a, const uint8_t secret[AUTH_SECRET_SIZE]);
/*
 * Makes a token: always the same one for the same thing and mark. A token of one kind is not
 * accepted as another.
 */
void auth_make_token(const struct auth *a, const char *mark, const char *kind, const char *id,
	char out[AUTH_TOKEN_SIZE]);
/* The MAC alone, of any text: for URLs that are signed. */
void auth_sign(
	const struct auth *a, const char *kind, const char *text, char out[AUTH_SIGNATURE_SIZE]);
/*
 * Fills id with the object the token opens, and mark with what it was made for: auth_admit_mark
 * tells whether that is still good. Returns false if the token is not valid.
 */
bool auth_open_token(const struct auth *a, const char *kind, const char *token, char id[ID_SIZE],
	char mark[AUTH_MARK_SIZE]);

/* For a mount's guard: without keys, refuses names that are neither loopback's nor a sandbox's. */
int auth_guard_name(const struct auth *a, const struct http_request *req, struct error *e);
/* Also refuses requests that pages of other sites send. */
int auth_guard_site(const struct auth *a, const struct http_request *req, struct error *e);
/* For a mount's admit: by the key that the request has. */
int auth_admit(const struct auth *a, struct http_request *req, struct error *e);
/* Admits by the mark of the request's token, without setting the tenant. */
int auth_admit_mark(
	const struct auth *a, struct http_request *req, const char *mark, struct error *e);
/* Calls with the marks that tokens of a tenant's things may have, until one matches. */
bool auth_search_marks(const struct auth *a, const char *tenant,
	bool (*matches)(void *arg, const char *mark), void *arg);
/* Returns the mark of the request's key, for tokens that are made for it. */
const char *auth_mark(const struct http_request *req);
/* Returns the tenant of the request's key; NULL if the request was admitted otherwise. */
const char *auth_tenant(const struct http_request *req);
/* Whether the key that the request has includes the scope. */
bool auth_may(const struct http_request *req, enum http_scope scope);
/* For http_server_cut: those that came with the text of this mark. */
bool auth_is_marked(void *mark, const void *principal);
