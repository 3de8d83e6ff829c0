/*
 * What the first bytes of a connection say: the name in a TLS ClientHello, the Host of an HTTP
 * request, or nothing. Parsers without sockets. They see the bytes from the first one on, again and
 * again as more of them come, and refuse whatever another parser could understand differently.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIRST_NAME_SIZE 256
#define HELLO_MAX       16384 /* bytes of a ClientHello, its records joined */
#define REQUEST_MAX     16384 /* bytes of the head of a request */
#define FIRST_MAX       (HELLO_MAX + 2048)

enum first_kind {
	FIRST_MORE, /* cannot be told yet */
	FIRST_TEXT, /* the same, but no method of HTTP begins like this */
	FIRST_TLS,
	FIRST_HTTP,
	FIRST_OTHER
};
enum first_kind first_look(const uint8_t *data, size_t len);

/*
 * Puts a name into lower case and takes a dot off its end. Returns false if it is no name of a
 * host: then it may be an address.
 */
bool first_settle_name(const uint8_t *data, size_t len, char out[FIRST_NAME_SIZE]);

/* Reads a ClientHello. 1: `name` is the server's name, "" if none is given; 0: more is needed;
 * -EINVAL. */
int hello_read(const uint8_t *data, size_t len, char name[FIRST_NAME_SIZE]);

/* How a request is framed, and whom it is for. */
struct request {
	char host[FIRST_NAME_SIZE]; /* in lower case, without port; "": none was given */
	bool is_name;               /* the host is no address */
	bool is_chunked, upgrades;
	uint64_t length; /* of the body */
};

/* Returns the length of the head, 0 if more is needed, -EINVAL. */
int request_read(const uint8_t *data, size_t len, struct request *ret);

/* A chunked body, as it passes. */
struct chunks {
	int state;
	unsigned digits;
	uint64_t left;
	bool ended;
};
/* Returns how many bytes of `data` belong to the body, up to its end; -EINVAL if malformed. */
ptrdiff_t chunks_pass(struct chunks *c, const uint8_t *data, size_t len);
