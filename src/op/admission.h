/*
 * What an API asks before it lets a request in, while its body has not been read: answered at once,
 * by id. Only who may reach a sandbox by a token of it asks here; whoever has a key is checked by
 * the operation itself.
 */
#pragma once

#include <stdbool.h>

#include "base/id.h"
#include "op/op.h"

/* Whether a sandbox runs, or sleeps and wakes by itself when it is called. */
bool op_is_reachable(const struct ops *ops, const char *id);
/* Searches all tenants' sandboxes for the one that `matches`; false: there is none. */
bool op_find_matching(const struct ops *ops, bool (*matches)(void *arg, const char *id), void *arg,
	char ret[ID_SIZE]);
