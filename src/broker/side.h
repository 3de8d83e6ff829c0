/*
 * One of the two sockets of a connection, with TLS or without: what is read and written here is
 * what the other side means. Never waits.
 */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "stream/loop.h"

struct side {
	struct source source;
	SSL *ssl; /* NULL: plain */
	bool is_greeted;
	bool is_shut;          /* nothing more is written */
	uint64_t taken, given; /* bytes of the network, of a plain side */
};

bool side_is_greeted(const struct side *s);
/* Goes on with the handshake: 1 when it is done, 0 when it waits, -EPROTO. */
int side_greet(struct side *s);
/* Bytes; 0 at an orderly end, -EAGAIN, -EPIPE if it ended without saying so, or another error. */
ssize_t side_read(struct side *s, void *to, size_t len);
/* Bytes that were taken, -EAGAIN, or another error. */
ssize_t side_write(struct side *s, const void *from, size_t len);
/* Says that nothing more comes; `in_order`: what came before was all of it. */
void side_shut(struct side *s, bool in_order);
/* Closes by a reset, unless `in_order`. */
void side_close(struct side *s, bool in_order);
/* Bytes of the network, there and back. */
uint64_t side_given(const struct side *s);
uint64_t side_taken(const struct side *s);
