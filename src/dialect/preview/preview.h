/*
 * Previews: what listens on a port of a sandbox, in a browser or for any other HTTP client.
 *
 *     http://<port>-<id>.<domain>/…     a host of its own for each port
 *     /p/<id>/<port>/…                  below the server's own host
 *
 * The second form shares its origin with the API and the console. So it takes no cookie and gives
 * none, and a page that it serves is put into a sandbox of the browser's, as if it had an origin of
 * its own: it cannot act as whoever is signed in there.
 *
 * Who may see a port is decided by op_port: whoever has a key of the tenant, a token of the port or
 * of the sandbox, or everyone. None of these reach what listens there.
 */
#pragma once

#include "answer/dialect.h"

extern const struct dialect preview_dialect;
