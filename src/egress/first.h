/*
 * What the first bytes of a connection say: the name in a TLS ClientHello, the Host of an HTTP
 * request, or nothing. Parsers without sockets. They see the bytes from the first one on, again and
 * again as more of them come, and refuse whatever another parser could understand differently.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stream/request.h"

#define FIRST_NAME_SIZE REQUEST_HOST_SIZE
#define HELLO_MAX       16384 /* bytes of a ClientHello, its records joined */
#define FIRST_MAX       (HELLO_MAX + 2048)

enum first_kind {
	FIRST_MORE, /* cannot be told yet */
	FIRST_TEXT, /* the same, but no method of HTTP begins like this */
	FIRST_TLS,
	FIRST_HTTP,
	FIRST_OTHER
};
enum first_kind first_look(const uint8_t *data, size_t len);

/* Reads a ClientHello. 1: `name` is the server's name, "" if none is given; 0: more is needed;
 * -EINVAL. */
int hello_read(const uint8_t *data, size_t len, char name[FIRST_NAME_SIZE]);
