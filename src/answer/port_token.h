/*
 * Addresses of ports, and their tokens: the id of a grant (model/port.h), and a proof that this
 * server made it for this port of this sandbox. Whether the grant is still there is for the
 * operation to say.
 */
#pragma once

#include "http/auth.h"
#include "json/json.h"

#define PORT_TOKEN_SIZE (ID_LEN + AUTH_SIGNATURE_SIZE)

void port_token_make(const struct auth *auth, const char *sandbox, unsigned port, const char *id,
	char out[PORT_TOKEN_SIZE]);
/* Fills id with that of the grant. Returns false if the token is not one of this port. */
bool port_token_open(const struct auth *auth, const char *sandbox, unsigned port, const char *token,
	char id[ID_SIZE]);

/* Writes "url", where the port of a sandbox is seen; query is "" or begins with "?". */
void port_put_url(struct json_writer *w, const struct http_request *req, const char *sandbox,
	int64_t port, const char *query);
