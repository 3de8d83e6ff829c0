/*
 * Passes a request on to another HTTP/1.1 server, over a stream that is connected to it, and the
 * answer back: bodies of any length as streams both ways, at the pace of whoever is slower, and
 * after an upgrade, such as to WebSocket, bytes as they are.
 *
 * Both heads are read strictly and written anew: the fields of one hop (Connection, Keep-Alive,
 * Transfer-Encoding …) end here, and so do the fields that the form takes out. An answer that is
 * cut short is cut short for the client.
 *
 * A connection carries other requests afterwards if none of them has a body, and if each answer
 * says where it ends: then no byte of one can be taken for part of the next.
 */
#pragma once

#include <uv.h>

#include "http/http.h"

struct http_pass_form {
	/*
	 * The client is upgraded to this protocol at once, and no head is sent or awaited: bytes
	 * pass as they are. Target, host and fields are not looked at. NULL: HTTP is spoken.
	 */
	const char *tunnel;
	const char *target; /* as it is sent, from "/" on */
	const char *host;   /* what Host says there */
	bool spare;         /* requests have passed here before; only if http_pass_can_repeat */
	/*
	 * Whether a field goes on; *value may be replaced by a text that lives as long as the
	 * request. NULL: all do.
	 */
	bool (*request_field)(void *arg, const char *name, const char **value);
	bool (*answer_field)(void *arg, const char *name, const char **value);
	/* The head of the answer has come. */
	void (*answered)(void *arg);
	/* Bytes of a body have come or gone. */
	void (*traffic)(void *arg);
	/*
	 * The spare stream was closed before a byte of an answer came: nothing has been answered,
	 * and the request is the callee's again.
	 */
	void (*stale)(void *arg);
	/*
	 * It is over, whichever way. The request must not be touched any more. `left` is the
	 * callee's: the stream, if it can carry another request; else NULL.
	 */
	void (*ended)(void *arg, uv_tcp_t *left);
	void *arg;
};

/*
 * Takes the stream, which is of the heap and read by nobody, and the answering of the request,
 * whose route `streams_body`.
 */
void http_pass(struct http_request *req, uv_tcp_t *stream, const struct http_pass_form *form);
/* Whether the request can be sent twice: it changes nothing, and has neither body nor upgrade. */
bool http_pass_can_repeat(const struct http_request *req);
