/* Capabilities that a server process keeps. */
#pragma once

#include <stddef.h>

/* Drops every capability but these, for good. */
int capabilities_keep(const unsigned *kept, size_t count);
