#include "secret/seal.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "base/buf.h"
#include "base/id.h"
#include "base/mem.h"

#define NONCE_SIZE crypto_aead_xchacha20poly1305_ietf_NPUBBYTES

static_assert(SEAL_KEY_SIZE == crypto_aead_xchacha20poly1305_ietf_KEYBYTES, "a key of this cipher");
static_assert(SEAL_OVERHEAD == NONCE_SIZE + crypto_aead_xchacha20poly1305_ietf_ABYTES,
	"a nonce and a tag");

void seal_key_generate(uint8_t key[SEAL_KEY_SIZE], char text[SEAL_KEY_TEXT_SIZE])
{
	id_random(key, SEAL_KEY_SIZE);
	sodium_bin2hex(text, SEAL_KEY_TEXT_SIZE, key, SEAL_KEY_SIZE);
}

int seal_key_parse(const char *text, uint8_t key[SEAL_KEY_SIZE])
{
	size_t len;
	const char *end;
	if (sodium_hex2bin(key, SEAL_KEY_SIZE, text, strlen(text), NULL, &len, &end) < 0 ||
		len != SEAL_KEY_SIZE || end[strspn(end, " \t\r\n")])
		return -EINVAL;
	return 0;
}

/* Each text ends with its NUL, so that no two places are the same bytes. */
static void seal_put_place(struct buf *out, const struct seal_place *place)
{
	buf_append(out, place->kind, strlen(place->kind) + 1);
	buf_append(out, place->owner, strlen(place->owner) + 1);
	buf_append(out, place->name, strlen(place->name) + 1);
	buf_require(out);
}

struct strings seal_value(const uint8_t key[SEAL_KEY_SIZE], const struct seal_place *place,
	const void *value, size_t len)
{
	autobuf bound = {0};
	struct strings sealed = {mem_new(len + SEAL_OVERHEAD), len + SEAL_OVERHEAD};
	uint8_t *nonce = (uint8_t *)sealed.data;
	seal_put_place(&bound, place);
	id_random(nonce, NONCE_SIZE);
	crypto_aead_xchacha20poly1305_ietf_encrypt(nonce + NONCE_SIZE, NULL, value, len,
		(const uint8_t *)bound.data, bound.len, NULL, nonce, key);
	return sealed;
}

int seal_open(const uint8_t key[SEAL_KEY_SIZE], const struct seal_place *place,
	const struct strings *sealed, void *value)
{
	autobuf bound = {0};
	const uint8_t *nonce = (const uint8_t *)sealed->data;
	if (sealed->len < SEAL_OVERHEAD)
		return -EBADMSG;
	seal_put_place(&bound, place);
	int r = crypto_aead_xchacha20poly1305_ietf_decrypt(value, NULL, NULL, nonce + NONCE_SIZE,
		sealed->len - NONCE_SIZE, (const uint8_t *)bound.data, bound.len, nonce, key);
	return r < 0 ? -EBADMSG : 0;
}
