/*
 * A tar parser for callers that cannot block: bytes are added in pieces of any size, and each step
 * returns what they contain until more are needed. Only one header or piece of content is held.
 */
#pragma once

#include "base/tar.h"

enum tar_step {
	TAR_MORE,    /* nothing can be said before more bytes come */
	TAR_MEMBER,  /* reader.member is the next one */
	TAR_CONTENT, /* piece, piece_len: some of its content, valid until the next call */
	TAR_END      /* the end of the archive; later bytes are ignored */
};

struct tar_push {
	struct tar_reader reader;
	struct buf in;
	size_t at;              /* bytes of it that were consumed */
	uint64_t left, padding; /* of the member's content */
	bool ended;
	const char *piece;
	size_t piece_len;
};

void tar_push_add(struct tar_push *p, const void *bytes, size_t len);
/* Negative: -EBADMSG, it is no archive; -ENOMEM. */
int tar_push_step(struct tar_push *p);
void tar_push_finish(struct tar_push *p);
