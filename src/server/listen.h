/* The one port. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

#define LISTEN_NAME_SIZE 128

/* Binds "HOST:PORT" ("[::1]:PORT", "localhost:0"); name gets what was bound, with the real port. */
int listen_open(
	const char *address, char name[LISTEN_NAME_SIZE], bool *is_loopback, struct error *e);
