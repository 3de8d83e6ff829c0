/* Ids: 20 characters of [a-z0-9], 103 random bits, usable as a DNS label and as a file name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ID_LEN  20
#define ID_SIZE (ID_LEN + 1)

/* Fills with random bytes. */
void id_random(void *out, size_t len);
void id_generate(char out[ID_SIZE]);
bool id_is_valid(const char *s);

/* Random UUIDs (version 4), for where others expect one. */
#define UUID_BYTES 16
#define UUID_SIZE  37

void uuid_generate(uint8_t out[UUID_BYTES]);
void uuid_format(const uint8_t uuid[UUID_BYTES], char out[UUID_SIZE]);

/*
 * An id in the form of a UUID (version 8) and back, for those who want one. The id is the number in
 * the 13 bytes besides version and variant, so that each has one UUID, always the same.
 */
void uuid_from_id(const char id[ID_SIZE], char out[UUID_SIZE]);
/* False: no id has this UUID. */
bool uuid_to_id(const char *uuid, char out[ID_SIZE]);
