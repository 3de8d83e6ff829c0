/*
 * An HTTP/1.1 response, parsed as its bytes arrive, in whatever pieces they come.
 *
 * It does no input of its own: the transport feeds it and tells it about the end. Body bytes go to
 * the sink at once, with the framing (Content-Length, chunks, or the end of the connection) taken
 * off.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "bunker.h"

#define RESPONSE_MAX_LINE    (16 << 10)
#define RESPONSE_MAX_HEADERS 128

/* Returns 0, or -1 to end the exchange, having kept its own error. */
typedef int response_body_fn(void *arg, int status, const char *data, size_t len);

enum response_state {
	RESPONSE_STATUS_LINE,
	RESPONSE_HEADER,
	RESPONSE_CHUNK_SIZE,
	RESPONSE_CHUNK_END,
	RESPONSE_TRAILER,
	/* From here on bytes are body, not lines. */
	RESPONSE_BODY,  /* `remaining` more bytes */
	RESPONSE_CHUNK, /* the same, and then a CHUNK_END */
	RESPONSE_UNTIL_CLOSE,
	RESPONSE_DONE
};

struct response {
	enum response_state state;
	int status;
	bool chunked;
	bool has_length;
	uint64_t remaining;
	unsigned header_count;
	struct buf line;
	response_body_fn *body;
	void *body_arg;
};

void client_response_init(struct response *r, response_body_fn *body, void *arg);
void client_response_finish(struct response *r);
int client_response_feed(struct response *r, const char *data, size_t len, struct bunker_error *e);
/* The peer has closed: fails unless the response is complete. */
int client_response_end(struct response *r, struct bunker_error *e);
