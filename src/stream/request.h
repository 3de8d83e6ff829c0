/*
 * Heads of HTTP/1 requests, read strictly: what two programs could understand in two ways is
 * refused, so that the server takes the same Host and the same end of a request as we do. A target
 * is a path: no CONNECT, no absolute form, no "*", no HTTP/2.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REQUEST_HOST_SIZE 256
#define REQUEST_MAX       16384 /* bytes of the head of a request */

/*
 * Puts a name into lower case and takes a dot off its end. Returns false if it is no name of a
 * host: then it may be an address.
 */
bool request_settle_name(const uint8_t *data, size_t len, char out[REQUEST_HOST_SIZE]);

/* How a request is framed, and whom it is for. */
struct request {
	char host[REQUEST_HOST_SIZE]; /* in lower case, without port; "": none was given */
	bool is_name;                 /* the host is no address */
	bool is_chunked, upgrades;
	uint64_t length; /* of the body */
};

struct request_field {
	const char *name, *value; /* in the head; spaces around the value are not part of it */
	size_t name_len, value_len;
};

bool request_is_token(const char *text, size_t len);
bool request_field_is(const struct request_field *f, const char *name);
/*
 * The next field of a head that request_read has taken, and of which *at is 0 at first: then the
 * request line is skipped. Returns false behind the last one.
 */
bool request_next_field(const uint8_t *head, size_t len, size_t *at, struct request_field *ret);
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
