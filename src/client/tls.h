/*
 * TLS to the server. A thread of its own turns the bytes of the connection, so that everything else
 * here sees a plain socket: it can be polled, peeked at and handed to a caller.
 */
#pragma once

#include "bunker.h"
#include "client/transport.h"

/*
 * Takes a connected socket, checks the server's certificate for url->host against the system's (or
 * SSL_CERT_FILE's) authorities, and returns the plain one; -1 with a sentence.
 */
int client_tls_begin(int fd, const struct transport_url *url, struct bunker_error *e);
