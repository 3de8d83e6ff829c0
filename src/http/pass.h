/*
 * Passes a request on to another HTTP/1.1 server, over a socket that is connected to it, and the
 * answer back: bodies of any length as streams both ways, at the pace of whoever is slower, and
 * after an upgrade, such as to WebSocket, bytes as they are.
 *
 * Both heads are read strictly and written anew: the fields of one hop (Connection, Keep-Alive,
 * Transfer-Encoding …) end here, and so do the fields that the form takes out. An answer that is
 * cut short is cut short for the client. There is one request on a connection.
 */
#pragma once

#include "http/http.h"

struct http_pass_form {
	/*
	 * The client is upgraded to this protocol at once, and no head is sent or awaited: bytes
	 * pass as they are. Target, host and fields are not looked at. NULL: HTTP is spoken.
	 */
	const char *tunnel;
	const char *target; /* as it is sent, from "/" on */
	const char *host;   /* what Host says there */
	/*
	 * Whether a field goes on; *value may be replaced by a text that lives as long as the
	 * request. NULL: all do.
	 */
	bool (*request_field)(void *arg, const char *name, const char **value);
	bool (*answer_field)(void *arg, const char *name, const char **value);
	/* Bytes have come or gone. */
	void (*traffic)(void *arg);
	/* It is over, whichever way. The request must not be touched any more. */
	void (*ended)(void *arg);
	void *arg;
};

/* Takes the socket, and the answering of the request, whose route `streams_body`. */
void http_pass(struct http_request *req, int fd, const struct http_pass_form *form);
