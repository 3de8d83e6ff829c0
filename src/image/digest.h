/* Whether bytes that pass by are those that a digest names. */
#pragma once

#include <sodium.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "image/manifest.h"

struct digest_check {
	crypto_hash_sha256_state state;
	int64_t bytes;
};

void digest_begin(struct digest_check *c);
void digest_add(struct digest_check *c, const void *data, size_t len);
/* Ends it. size: what was announced, or -1. */
int digest_end(struct digest_check *c, const struct image_digest *wanted, int64_t size,
	const char *what, struct error *e);
