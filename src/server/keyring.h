/* The keys of this server, as the HTTP room asks for them. */
#pragma once

#include "box/key/keys.h"
#include "http/auth.h"
#include "server/config.h"

struct http_server;

/* Opens the keys of the store, and adds the local one and those of the options. */
int keyring_open(struct keys **ret, uv_loop_t *loop, struct store *store, const struct config *c,
	const char *local_key, struct error *e);
struct auth_keys keyring_for_auth(struct keys *k);
/* From now on what a key has open ends with the key. */
void keyring_serve(struct keys *k, struct http_server *http);
