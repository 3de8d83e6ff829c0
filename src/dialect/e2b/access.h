/*
 * Which sandbox a request is for, and whether it may.
 *
 * E2B has every sandbox under a name of its own; with one server for all of them the sandbox is
 * found, in this order, by
 *
 *     Host: <port>-<id>.<domain>
 *     E2b-Sandbox-Id: <id>, and E2b-Sandbox-Port (without: that of envd)
 *     X-Access-Token: <token>            which names its sandbox; SDKs before 2.15 send no more
 *     /files?path=…&signature=v1_…       which names nothing: every sandbox's token is tried
 * (search.h)
 *
 * The first that is there counts, and nothing behind it is looked at: a request to one sandbox's
 * host name is never for another, whatever its headers say.
 */
#pragma once

#include <stdbool.h>

#include "base/id.h"
#include "dialect/e2b/e2b.h"

#define E2B_ENVD_PORT 49983
#define E2B_CODE_PORT 49999

/* A browser asks whether it may name one: the port is not known yet, the path says the rest. */
bool e2b_asks_for_sandbox(const struct http_request *req);
/* Sets the request's destination by what it is found by; negative: *e says why there is none. */
int e2b_find_destination(struct http_request *req, struct error *e);

/* The token that opens a sandbox's envd for whoever has the request's key. */
void e2b_token(const struct http_request *req, const char *id, char out[AUTH_TOKEN_SIZE]);
/* Does the request carry a token of this sandbox? Fills mark with the key it was made for. */
bool e2b_has_token(const struct http_request *req, const char *id, char mark[AUTH_MARK_SIZE]);

/* May it have the file it asks for: by token, or by a signature that is good and not too old? */
int e2b_check_file_access(
	const struct http_request *req, const char *id, char mark[AUTH_MARK_SIZE], struct error *e);
