/*
 * Questions of an API before it admits a request, while its body has not been read: answered at
 * once, by id. Only requests with a token of a sandbox are checked here; those with a key are
 * checked by the operation itself. And which sandbox a name in a path stands for.
 */
#pragma once

#include <stdbool.h>

#include "base/id.h"
#include "op/op.h"

/* Whether a sandbox runs, or sleeps and wakes by itself when it is called. */
bool op_is_reachable(const struct ops *ops, const char *id);
/* Returns the tenant that owns a sandbox, or NULL if there is no such sandbox. */
const char *op_tenant_of(const struct ops *ops, const char *id);
/* Returns whether a tenant has a living sandbox of this name, and its id. */
bool op_find_named(const struct ops *ops, const char *tenant, const char *name, char ret[ID_SIZE]);
/* Searches the sandboxes of all tenants for one that `matches`. Returns false if there is none. */
bool op_find_matching(const struct ops *ops,
	bool (*matches)(void *arg, const char *id, const char *tenant), void *arg,
	char ret[ID_SIZE]);
