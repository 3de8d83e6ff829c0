/* What a tenant may have at once, and has. */
#pragma once

#include <stddef.h>

#include "model/usage.h"

#include "base/error.h"

struct box;
struct sandbox;

struct tenant_quota {
	char tenant[64]; /* "": of everybody who has none of his own */
	struct tenant_amounts limit;
};

void tenant_show(struct box *b, const char *tenant, struct tenant_amounts *limit,
	struct tenant_amounts *used);

/* What is charged to its tenant. */
enum charge {
	CHARGE_NONE,
	CHARGE_DISK, /* and that it is there */
	CHARGE_ALL
};

struct tenant;

/* Charges it with this instead of what it is charged with; refused above the quota. */
int tenant_charge(struct sandbox *s, enum charge charge, struct error *e);
/* For what is there already, and for less than before. */
void tenant_force_charge(struct sandbox *s, enum charge charge);
/* Whose comparison it is, until it ends; NULL: the tenant has as many as it may. */
struct tenant *tenant_begin_comparison(struct box *b, const char *name, struct error *e);
void tenant_end_comparison(struct tenant *t);
void tenants_free(struct box *b);
