/*
 * multipart/form-data (RFC 7578) as it comes: bytes in, parts out, nothing of their content kept.
 *
 * Feed it from a body that is streamed:
 *
 *     sink.data:  n = multipart_push(m, data, len, &e);
 *                 negative: answer e.  less than len: http_body_unread(req, len - n)
 *     sink.end:   multipart_end(m, &e)
 *
 * A callback that cannot take more for now pauses the body and returns MULTIPART_PAUSE; after
 * http_body_resume the rest comes again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define MULTIPART_BOUNDARY_MAX 70
#define MULTIPART_HEAD_MAX     8192
#define MULTIPART_HEADERS_MAX  16

struct multipart_part {
	const char *name; /* decoded, UTF-8 */
	const char
		*filename; /* the same, as the client wants it: it may be any path; NULL: a field */
	const char *type;  /* Content-Type as sent, or NULL */
};

enum {
	MULTIPART_GO_ON = 0,
	MULTIPART_PAUSE = 1 /* nothing more is called before the next push */
};

/* Each returns one of the above, or a negative value with *e. */
struct multipart_events {
	int (*begin)(void *arg, const struct multipart_part *part, struct error *e);
	/* Never empty; a part without content has none. */
	int (*data)(void *arg, const char *data, size_t len, struct error *e);
	int (*end)(void *arg, struct error *e);
};

struct multipart;

/* The type is the header Content-Type, or NULL. Negative: *e says what is wrong with it. */
int multipart_create(struct multipart **ret, const char *type, size_t parts_max,
	const struct multipart_events *events, void *arg, struct error *e);
/* Returns how many bytes were taken: all, unless a callback paused. Negative: refused, for good. */
ptrdiff_t multipart_push(struct multipart *m, const char *data, size_t len, struct error *e);
/* The body has ended. Negative: it should not have. */
int multipart_end(const struct multipart *m, struct error *e);
void multipart_destroy(struct multipart *m);
