/*
 * Expanding what DEFLATE (RFC 1951) compressed, for where no library is: init reads zip archives
 * with it. The bytes may be anything; what is no such stream is refused, and never more than the
 * limit is written.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct deflate_io {
	/* Some bytes, at most max; 0: there are no more. */
	ssize_t (*read)(void *arg, unsigned char *bytes, size_t max);
	int (*write)(void *arg, const unsigned char *bytes, size_t len);
	void *arg;
};

/*
 * Expands the whole stream. Returns -EBADMSG if it is malformed or longer than `limit`, or the
 * first error of read or write.
 */
int deflate_expand(const struct deflate_io *io, uint64_t limit);
