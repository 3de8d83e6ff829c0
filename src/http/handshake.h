/* The opening handshake of a WebSocket, from a request to the headers of its answer. */
#pragma once

#include "base/error.h"
#include "http/http.h"

/*
 * Adds the headers of a 101 and gives the protocol that was agreed on, or NULL. Negative: *e is the
 * answer, and its headers are added.
 */
int http_accept_websocket(struct http_request *req, const char *const *protocols,
	const char **protocol, struct error *e);
