/* The front gives up what it does not need, before it reads its first byte from the network. */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* Becomes uid, with no capability, no way to gain one, and only these directories to write to. */
int confine_front(uid_t uid, const char *const *writable, struct error *e);
