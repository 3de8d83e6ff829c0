/*
 * Quotas. Each sandbox is charged to its tenant, in one place and before anything is made, so that
 * however many are asked for at once, exactly as many get one as there is room for.
 *
 *     awake, paused       one sandbox, its disk, its cpu, its memory: a thaw needs no more
 *     suspended, failed   one sandbox, its disk: a boot must find room again
 *     being deleted       nothing
 */
#include "box/sandbox/tenant.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "box/sandbox/object.h"

#define COMPARISONS_MAX 4

struct tenant {
	struct tenant_amounts limit, used;
	unsigned comparisons;
	int descriptors;
	UT_hash_handle by_name;
	char name[];
};

static const struct tenant_amounts *limit_of(const struct box *b, const char *name)
{
	const struct tenant_amounts *everybody = NULL;
	for (size_t i = 0; i < b->config.quota_count; i++) {
		const struct tenant_quota *q = &b->config.quotas[i];
		if (strcmp(q->tenant, name) == 0)
			return &q->limit;
		if (q->tenant[0] == '\0')
			everybody = &q->limit;
	}
	return everybody;
}

static struct tenant *tenant_of(struct box *b, const char *name)
{
	struct tenant *t = NULL;
	HASH_FIND(by_name, b->sandboxes.tenants, name, strlen(name), t);
	if (t)
		return t;
	t = mem_new(sizeof *t + strlen(name) + 1);
	memcpy(t->name, name, strlen(name) + 1);
	const struct tenant_amounts *limit = limit_of(b, name);
	if (limit)
		t->limit = *limit;
	if (t->limit.sandboxes == 0)
		t->limit.sandboxes = b->config.sandboxes_per_tenant;
	HASH_ADD(by_name, b->sandboxes.tenants, name[0], strlen(name), t);
	return t;
}

void tenants_free(struct box *b)
{
	struct tenant *t, *next;
	HASH_ITER (by_name, b->sandboxes.tenants, t, next) {
		HASH_DELETE(by_name, b->sandboxes.tenants, t);
		free(t);
	}
}

static struct tenant_amounts price_of(const struct sandbox *s, enum charge charge)
{
	struct tenant_amounts p = {0};
	if (charge >= CHARGE_DISK) {
		p.sandboxes = 1;
		p.disk = s->resources.disk;
	}
	if (charge >= CHARGE_ALL) {
		p.cpu = s->resources.cpu;
		p.memory = s->resources.memory;
	}
	return p;
}

static void tenant_add(struct tenant_amounts *to, const struct tenant_amounts *a, int sign)
{
	to->sandboxes += sign * a->sandboxes;
	to->cpu += sign * a->cpu;
	to->memory += sign * a->memory;
	to->disk += sign * a->disk;
}

void tenant_count_descriptors(struct box *b, const char *name, int change)
{
	tenant_of(b, name)->descriptors += change;
	b->sandboxes.descriptors += change;
}

int tenant_check_descriptor(struct box *b, const char *name, struct error *e)
{
	int limit = (int)b->config.descriptors, share = (int)b->config.descriptors_per_tenant;
	if (tenant_of(b, name)->descriptors >= share)
		return error_set(e, ERROR_QUOTA_EXCEEDED,
			"the tenant's sandboxes and operations on files have %d descriptors of the server, "
			"the most that is allowed",
			share);
	if (b->sandboxes.descriptors >= limit)
		return error_set(e, ERROR_RESOURCE_EXHAUSTED,
			"the server's %d descriptors for sandboxes and operations on files are in use",
			limit);
	return 0;
}

void tenant_force_charge(struct sandbox *s, enum charge charge)
{
	struct tenant *t = tenant_of(s->box, s->tenant);
	struct tenant_amounts old = price_of(s, s->charge), new = price_of(s, charge);
	tenant_add(&t->used, &old, -1);
	tenant_add(&t->used, &new, 1);
	tenant_count_descriptors(
		s->box, s->tenant, (charge >= CHARGE_ALL) - (s->charge >= CHARGE_ALL));
	s->charge = charge;
}

static int check_sum(const char *what, int64_t sum, int64_t limit,
	void (*format)(int64_t amount, char out[UNITS_TEXT_SIZE]), struct error *e)
{
	char text[UNITS_TEXT_SIZE];
	if (limit == 0 || sum <= limit)
		return 0;
	format(limit, text);
	return error_set(e, ERROR_QUOTA_EXCEEDED,
		"the tenant's sandboxes together would have more %s than its quota of %s", what,
		text);
}

int tenant_charge(struct sandbox *s, enum charge charge, struct error *e)
{
	const struct tenant *t = tenant_of(s->box, s->tenant);
	const struct tenant_amounts *limit = &t->limit;
	struct tenant_amounts sum = t->used;
	struct tenant_amounts old = price_of(s, s->charge), new = price_of(s, charge);
	tenant_add(&sum, &old, -1);
	tenant_add(&sum, &new, 1);
	if (sum.sandboxes > limit->sandboxes)
		return error_set(e, ERROR_QUOTA_EXCEEDED, "the limit of %lld sandboxes is reached",
			(long long)limit->sandboxes);
	if (check_sum("cpu", sum.cpu, limit->cpu, units_format_millicores, e) < 0 ||
		check_sum("memory", sum.memory, limit->memory, units_format_size, e) < 0 ||
		check_sum("disk", sum.disk, limit->disk, units_format_size, e) < 0)
		return -1;
	if (charge >= CHARGE_ALL && s->charge < CHARGE_ALL &&
		tenant_check_descriptor(s->box, s->tenant, e) < 0)
		return -1;
	tenant_force_charge(s, charge);
	return 0;
}

void tenant_show(struct box *b, const char *tenant, struct tenant_amounts *limit,
	struct tenant_amounts *used)
{
	const struct tenant *t = tenant_of(b, tenant);
	*limit = t->limit;
	*used = t->used;
}

struct tenant *tenant_begin_comparison(struct box *b, const char *name, struct error *e)
{
	struct tenant *t = tenant_of(b, name);
	if (t->comparisons == COMPARISONS_MAX) {
		error_set(e, ERROR_QUOTA_EXCEEDED,
			"%d comparisons and exports of the tenant are being read; that is the limit",
			COMPARISONS_MAX);
		return NULL;
	}
	t->comparisons++;
	return t;
}

void tenant_end_comparison(struct tenant *t)
{
	t->comparisons--;
}
