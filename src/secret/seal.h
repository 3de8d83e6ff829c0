/*
 * Values encrypted at rest, by XChaCha20-Poly1305 under the server's key: a random nonce, then what
 * it encrypts. Where a value belongs is authenticated with it: a row that somebody moved to another
 * tenant or name does not open there.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/field.h"

#define SEAL_KEY_SIZE 32
#define SEAL_OVERHEAD 40

/* Where a value belongs: whose it is, and under which name. */
struct seal_place {
	const char *kind, *owner, *name;
};

/* The key as 64 hexadecimal digits, as its file has it. */
#define SEAL_KEY_TEXT_SIZE (2 * SEAL_KEY_SIZE + 1)
void seal_key_generate(uint8_t key[SEAL_KEY_SIZE], char text[SEAL_KEY_TEXT_SIZE]);
/* Takes blanks and a line's end after it. Returns -EINVAL if it is no key. */
int seal_key_parse(const char *text, uint8_t key[SEAL_KEY_SIZE]);

/* The caller frees what is returned. */
struct strings seal_value(const uint8_t key[SEAL_KEY_SIZE], const struct seal_place *place,
	const void *value, size_t len);
/*
 * Writes sealed->len - SEAL_OVERHEAD bytes. Returns -EBADMSG, and writes nothing that could be
 * taken for the value, if it was sealed under another key, for another place, or was changed.
 */
int seal_open(const uint8_t key[SEAL_KEY_SIZE], const struct seal_place *place,
	const struct strings *sealed, void *value);
