/*
 * The server's certificate and its key: read by root, who alone may, and given to the front, which
 * has no files. They are read again at SIGHUP and when the files have changed. What cannot be used
 * is told in the log, and the front goes on with what it has.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"

struct http_server;

struct certificates {
	const char *chain_path, *key_path; /* NULL: this server has none */
	struct buf chain, key;             /* PEM */
	int64_t stamp;                     /* of the files, when they were read */
	int pair[2];                       /* root's, the front's; -1: none */
};

/* ---- root ---- */

/* Returns -1 with a sentence if they cannot be used. */
int certificates_open(
	struct certificates *c, const char *chain_path, const char *key_path, struct error *e);
/* Reads them again if they have changed, and tells the front. */
void certificates_look(struct certificates *c);

/* ---- the front ---- */

struct certificates_link {
	uv_poll_t poll;
	struct http_server *http;
};

/* Has the server use them, and those that come. */
int certificates_serve(const struct certificates *c, struct certificates_link *link,
	uv_loop_t *loop, struct http_server *http, struct error *e);
void certificates_leave(const struct certificates *c, struct certificates_link *link);
