/* A request that waits for something which goes on when its client has gone. */
#pragma once

#include "api/routes.h"

struct api_call {
	struct http_request *req; /* NULL once the client has gone */
	char id[ID_SIZE];         /* of what it is about */
};

/* id may be NULL. */
struct api_call *api_call_new(struct http_request *req, const char *id);

/* Its ends, each the callback of something: they answer, unless nobody listens, and free it. */

/* 204. */
void api_call_done(void *arg, const struct error *e);
/* The sandbox of that id, as it is now. */
void api_call_sandbox(void *arg, const struct error *e);
