/* The limits of a tenant, and its current use. */
#pragma once

#include <stddef.h>

#include "model/usage.h"

#include "base/error.h"

struct box;
struct sandbox;

struct tenant_quota {
	char tenant[64]; /* "": the limits of all tenants without their own */
	struct tenant_amounts limit;
};

void tenant_show(struct box *b, const char *tenant, struct tenant_amounts *limit,
	struct tenant_amounts *used);

/* The resources that a sandbox charges to its tenant. */
enum charge {
	CHARGE_NONE,
	CHARGE_DISK, /* and that it is there */
	CHARGE_ALL
};

struct tenant;

/* Charges it with this instead of what it is charged with; refused above the quota. */
int tenant_charge(struct sandbox *s, enum charge charge, struct error *e);
/* Charges without a check, for existing objects and for less than before. */
void tenant_force_charge(struct sandbox *s, enum charge charge);
/*
 * Counts a comparison for its tenant until it ends. Returns NULL if the tenant has as many as it
 * may.
 */
struct tenant *tenant_begin_comparison(struct box *b, const char *name, struct error *e);
void tenant_end_comparison(struct tenant *t);
/*
 * Descriptors of the front: one for each sandbox that is awake or paused, counted with its charge,
 * and one for each connection to a file worker. What connections of clients need is left out of
 * what sandboxes may have, so that nobody can use up the places of others.
 */
int tenant_check_descriptor(struct box *b, const char *name, struct error *e);
void tenant_count_descriptors(struct box *b, const char *name, int change);
void tenants_free(struct box *b);
