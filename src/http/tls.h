/*
 * TLS as bytes to bytes: what a socket received goes in, what it is to send comes out. Knows no
 * sockets; secure.c moves the bytes. TLS 1.2 and newer, ALPN http/1.1 only, no renegotiation, no
 * compression, no client certificates.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

/* A certificate with its key, for the connections that begin from now on. */
struct http_tls_context;

/* PEM texts: the certificate with its chain, its key. Returns -1 with a sentence. */
int http_tls_context_create(struct http_tls_context **ret, const char *chain, size_t chain_len,
	const char *key, size_t key_len, struct error *e);
/* Connections that have begun keep what they need of it. Takes NULL. */
void http_tls_context_destroy(struct http_tls_context *context);

struct http_tls;

/* Returns NULL if there is no memory. */
struct http_tls *http_tls_begin(const struct http_tls_context *context);
void http_tls_end(struct http_tls *t);

/* Gives it what was received. Returns -ENOMEM, or 0. */
int http_tls_receive(struct http_tls *t, const char *data, size_t len);
/*
 * Reads up to `size` bytes that the client has said. Returns how many; 0: more has to be received;
 * -ENODATA: the client has ended in order; -EPROTO: the connection is of no use any more. What is
 * to be sent may have grown each time.
 */
ssize_t http_tls_read(struct http_tls *t, char *out, size_t size);
/* Whether a read could give something without receiving more. */
bool http_tls_has_more(const struct http_tls *t);
/* Says something to the client: it is in what is to be sent. Returns 0 or -EPROTO. */
int http_tls_write(struct http_tls *t, const char *data, size_t len);
/* Says that nothing more will be said. */
void http_tls_say_end(struct http_tls *t);
/* Appends what is to be sent. */
void http_tls_take_output(struct http_tls *t, struct buf *out);
