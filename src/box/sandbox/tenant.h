/* What a tenant may have at once, and has. */
#pragma once

#include <stddef.h>

#include "model/usage.h"

struct box;

struct tenant_quota {
	char tenant[64]; /* "": of everybody who has none of his own */
	struct tenant_amounts limit;
};

void tenant_show(struct box *b, const char *tenant, struct tenant_amounts *limit,
	struct tenant_amounts *used);
