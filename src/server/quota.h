/* --quota: what a tenant may have at once. */
#pragma once

#include "base/error.h"
#include "box/sandbox/tenant.h"

/* "[TENANT=]sandboxes:N,cpu:CPU,memory:SIZE,disk:SIZE", each at most once. */
int quota_parse(const char *text, struct tenant_quota *ret, struct error *e);
