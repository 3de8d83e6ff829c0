#include "base/id.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char id_alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";

void id_random(void *out, size_t len)
{
	ssize_t n = getrandom(out, len, 0);
	assert(n == (ssize_t)len && "up to 256 bytes come whole once the kernel's pool is seeded");
	(void)n;
}

void id_generate(char out[ID_SIZE])
{
	/* 252 = 7 * 36: bytes above are thrown away, so that every character is equally likely. */
	int n = 0;
	while (n < ID_LEN) {
		unsigned char random[32];
		id_random(random, sizeof random);
		for (size_t i = 0; i < sizeof random && n < ID_LEN; i++)
			if (random[i] < 252)
				out[n++] = id_alphabet[random[i] % 36];
	}
	out[ID_LEN] = '\0';
}

bool id_is_valid(const char *s)
{
	return strnlen(s, ID_SIZE) == ID_LEN && strspn(s, id_alphabet) == ID_LEN;
}

void uuid_generate(uint8_t out[UUID_BYTES])
{
	id_random(out, UUID_BYTES);
	out[6] = (uint8_t)((out[6] & 0x0f) | 0x40);
	out[8] = (uint8_t)((out[8] & 0x3f) | 0x80);
}

void uuid_format(const uint8_t uuid[UUID_BYTES], char out[UUID_SIZE])
{
	for (size_t i = 0, at = 0; i < UUID_BYTES; i++, at += 2) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			out[at++] = '-';
		snprintf(out + at, UUID_SIZE - at, "%02x", uuid[i]);
	}
}

/* The bytes of a UUID that an id fills; the others say version and variant. 36^20 < 2^104. */
static const uint8_t uuid_id_bytes[] = {0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 15};
static const uint8_t uuid_of_id[UUID_BYTES] = {[6] = 0x80, [8] = 0x80};

void uuid_from_id(const char id[ID_SIZE], char out[UUID_SIZE])
{
	uint8_t uuid[UUID_BYTES];
	memcpy(uuid, uuid_of_id, sizeof uuid);
	for (; *id; id++) {
		unsigned carry = (unsigned)(strchr(id_alphabet, *id) - id_alphabet);
		for (size_t i = sizeof uuid_id_bytes; i-- > 0; carry >>= 8) {
			uint8_t *byte = &uuid[uuid_id_bytes[i]];
			carry += *byte * 36u;
			*byte = (uint8_t)carry;
		}
	}
	uuid_format(uuid, out);
}

static bool uuid_parse(const char *text, uint8_t out[UUID_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	if (strnlen(text, UUID_SIZE) != UUID_SIZE - 1)
		return false;
	for (size_t i = 0; i < UUID_BYTES; i++, text += 2) {
		if ((i == 4 || i == 6 || i == 8 || i == 10) && *text++ != '-')
			return false;
		const char *high = strchr(digits, text[0]), *low = strchr(digits, text[1]);
		if (!high || !low)
			return false;
		out[i] = (uint8_t)((high - digits) << 4 | (low - digits));
	}
	return true;
}

bool uuid_to_id(const char *text, char out[ID_SIZE])
{
	uint8_t uuid[UUID_BYTES];
	unsigned left = 0;
	if (!uuid_parse(text, uuid))
		return false;
	for (size_t i = 6; i < 9; i++)
		if (uuid[i] != uuid_of_id[i])
			return false;
	for (int n = ID_LEN; n-- > 0;) {
		unsigned rest = 0;
		left = 0;
		for (size_t i = 0; i < sizeof uuid_id_bytes; i++) {
			uint8_t *byte = &uuid[uuid_id_bytes[i]];
			rest = rest << 8 | *byte;
			*byte = (uint8_t)(rest / 36);
			left |= *byte;
			rest %= 36;
		}
		out[n] = id_alphabet[rest];
	}
	out[ID_LEN] = '\0';
	return left == 0;
}
