#include "box/key/key_text.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/id.h"

#define BODY_MIN 16
#define BODY_MAX 128

static const char *const prefixes[] = {"bnk_", "e2b_"};

void key_text_generate(char out[KEY_TEXT_SIZE])
{
	uint8_t random[20];
	char hex[sizeof random * 2 + 1];
	id_random(random, sizeof random);
	sodium_bin2hex(hex, sizeof hex, random, sizeof random);
	snprintf(out, KEY_TEXT_SIZE, "bnk_%s", hex);
}

/* The body behind any of our prefixes; a key may also be given without one. */
static const char *key_text_body(const char *text)
{
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0)
			return text + strlen(prefixes[i]);
	return text;
}

bool key_text_hash(const char *text, uint8_t hash[KEY_HASH_SIZE])
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	const char *body = key_text_body(text);
	size_t len = strnlen(body, BODY_MAX + 1);
	if (len < BODY_MIN || len > BODY_MAX || strspn(body, allowed) != len)
		return false;
	crypto_generichash(hash, KEY_HASH_SIZE, (const uint8_t *)body, len, NULL, 0);
	return true;
}

void key_text_mark(const uint8_t hash[KEY_HASH_SIZE], char out[KEY_MARK_SIZE])
{
	uint8_t mark[crypto_generichash_BYTES_MIN];
	crypto_generichash(mark, sizeof mark, hash, KEY_HASH_SIZE, NULL, 0);
	sodium_bin2hex(out, KEY_MARK_SIZE, mark, (KEY_MARK_SIZE - 1) / 2);
}
