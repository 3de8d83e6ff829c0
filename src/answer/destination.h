/*
 * Finds out which port of which sandbox a request is for. Each port of a sandbox has a host name,
 *
 *     Host: <port>-<id>.<domain>
 *
 * and where clients cannot use it, a dialect may have headers that say the same. A host name wins
 * over headers: a request to one sandbox's name is never for another.
 *
 * The domain is not compared: behind a proxy, or with several names, the server cannot know it.
 */
#pragma once

#include "http/http.h"

struct destination_headers {
	const char *id;        /* its value: "<id>", or "<id>-<anything>" */
	const char *port;      /* may be absent */
	unsigned default_port; /* without that header */
};

/* False: the host name is not one of a sandbox. */
bool destination_in_host(const struct http_request *req, struct http_destination *ret);
/* False: the header is absent. A malformed id or port gives a destination that does not exist. */
bool destination_in_headers(const struct http_request *req, const struct destination_headers *names,
	struct http_destination *ret);
/* False: no sandbox can have this name. Otherwise *ret is what the name has before the first '-'.
 */
bool destination_parse_id(const char *name, char ret[ID_SIZE]);
