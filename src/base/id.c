#include "base/id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char id_alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";

void id_generate(char out[ID_SIZE])
{
	/* 252 = 7 * 36: bytes above are thrown away, so that every character is equally likely. */
	int n = 0;
	while (n < ID_LEN) {
		unsigned char random[32];
		if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
			abort();
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
	if (getrandom(out, UUID_BYTES, 0) != UUID_BYTES)
		abort();
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
