/* Ids: 20 characters of [a-z0-9], 103 random bits, usable as a DNS label and as a file name. */
#pragma once

#include <stdbool.h>

#define ID_LEN  20
#define ID_SIZE (ID_LEN + 1)

void id_generate(char out[ID_SIZE]);
bool id_is_valid(const char *s);
