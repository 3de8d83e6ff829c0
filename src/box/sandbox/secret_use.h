/*
 * Tenants' secrets and the sandboxes that use them: a value that was changed is in force for the
 * next request when that is told, and a secret that a rule names is not deleted.
 */
#pragma once

#include "box/sandbox/sandbox.h"
#include "model/secret.h"

/* Fills *ret, whose texts are valid until something else is asked; returns false if there is none.
 */
bool secret_use_get(struct box *b, const char *tenant, const char *name, struct secret_record *ret);
/* By name. Calls until `each` returns false. */
void secret_use_each(struct box *b, const char *tenant,
	bool (*each)(void *arg, const struct secret_record *record), void *arg);
/* Calls back, now or later. */
void secret_use_put(struct box *b, const char *tenant, const char *name, const char *value,
	sandbox_done_fn *done, void *arg);
void secret_use_delete(
	struct box *b, const char *tenant, const char *name, sandbox_done_fn *done, void *arg);
