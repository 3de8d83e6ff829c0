/* The static init, as a file inside the one binary; made by tools/embed.py. */
#pragma once

#include <stddef.h>

extern const unsigned char embedded_init[];
extern const size_t embedded_init_size;
