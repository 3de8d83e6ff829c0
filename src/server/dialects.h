/* The APIs that this server speaks: the only list. */
#pragma once

#include "answer/dialect.h"

extern const struct dialect *const dialects[]; /* NULL ends */

/* All of them, as they are served. */
struct services {
	struct service *list;
	size_t count;
	struct http_mount *mounts;
	size_t mount_count;
};

/* The server is borrowed until services_free. */
void services_start(struct services *s, struct server *server);
/* Finds out which sandbox a request is for: for http_server_on_head. */
void services_address(struct http_request *req);
void services_stop(struct services *s);
void services_free(struct services *s);
