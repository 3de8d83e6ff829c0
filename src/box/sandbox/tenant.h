/* What a tenant may have at once, and has. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct box;

/* Amounts of all its sandboxes together; as a limit 0 stands for none. */
struct tenant_amounts {
	int64_t sandboxes;
	int64_t cpu; /* millicores */
	int64_t memory, disk;
};

struct tenant_quota {
	char tenant[64]; /* "": of everybody who has none of his own */
	struct tenant_amounts limit;
};

void tenant_show(struct box *b, const char *tenant, struct tenant_amounts *limit,
	struct tenant_amounts *used);
