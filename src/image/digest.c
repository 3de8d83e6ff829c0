#include "image/digest.h"

#include <string.h>

void digest_begin(struct digest_check *c)
{
	c->bytes = 0;
	crypto_hash_sha256_init(&c->state);
}

void digest_add(struct digest_check *c, const void *data, size_t len)
{
	c->bytes += (int64_t)len;
	crypto_hash_sha256_update(&c->state, data, len);
}

int digest_end(struct digest_check *c, const struct image_digest *wanted, int64_t size,
	const char *what, struct error *e)
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	struct image_digest found;
	crypto_hash_sha256_final(&c->state, hash);
	sodium_bin2hex(found.hex, sizeof found.hex, hash, sizeof hash);
	if (size >= 0 && c->bytes != size)
		return error_set(e, ERROR_DIGEST_MISMATCH,
			"%.100s has %lld bytes, not the %lld it should have", what,
			(long long)c->bytes, (long long)size);
	if (wanted->hex[0] && strcmp(found.hex, wanted->hex) != 0)
		return error_set(e, ERROR_DIGEST_MISMATCH,
			"%.100s is not sha256:%.12s…, it was changed or cut", what, wanted->hex);
	return 0;
}
