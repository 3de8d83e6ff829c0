/* A body that is passed on as it comes, at the pace of who takes it. */
#pragma once

#include "api/routes.h"

struct intake_taker {
	size_t (*room)(const void *taker); /* bytes it would like to have now */
	void (*write)(void *taker, const char *data, size_t len);
	void (*end)(void *taker);
	void (*cancel)(void *taker); /* the client has gone */
};

struct intake {
	struct http_request *req;
	const struct intake_taker *how;
	void *taker;
	bool paused;
};

/* The taker's owner is the intake: it is told by intake_room, and frees it when it has answered. */
struct intake *intake_new(struct http_request *req, const struct intake_taker *how);
void intake_begin(struct intake *in, void *taker);
/* There is room again. */
void intake_room(void *intake);
