/* Ids: 20 characters of [a-z0-9], 103 random bits, usable as a DNS label and as a file name. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ID_LEN  20
#define ID_SIZE (ID_LEN + 1)

void id_generate(char out[ID_SIZE]);
bool id_is_valid(const char *s);

/* Random UUIDs (version 4), for where others expect one. */
#define UUID_BYTES 16
#define UUID_SIZE  37

void uuid_generate(uint8_t out[UUID_BYTES]);
void uuid_format(const uint8_t uuid[UUID_BYTES], char out[UUID_SIZE]);
