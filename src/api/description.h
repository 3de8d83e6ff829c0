/* api/openapi.yaml, as a file inside the one binary; made by tools/embed.py. */
#pragma once

#include <stddef.h>

extern const unsigned char api_description[];
extern const size_t api_description_size;
