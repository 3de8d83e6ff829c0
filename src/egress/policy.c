#include "egress/policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int policy_init(struct policy *p, enum network_mode mode, uint8_t *data, size_t len)
{
	struct egress_rule rule;
	size_t at = 0, count = 0;
	int r;
	*p = (struct policy){.mode = mode, .data = data};
	while ((r = rule_unpack(data, len, &at, &rule)) > 0)
		count++;
	if (r < 0 || count > EGRESS_RULES_MAX) {
		policy_finish(p);
		return -EINVAL;
	}
	p->rules = mem_new_array(count + 1, sizeof *p->rules);
	for (at = 0; p->count < count; p->count++) {
		struct egress_rule *to = &p->rules[p->count];
		rule_unpack(data, len, &at, to);
		bool is_list = to->kind == RULE_NAME || to->kind == RULE_BELOW;
		p->allows_names |= is_list && !to->denies;
		p->denies_names |= is_list && to->denies;
		p->brokers_names |= to->kind == RULE_BROKERED;
	}
	return 0;
}

void policy_finish(struct policy *p)
{
	free(p->data);
	free(p->rules);
	*p = (struct policy){0};
}

enum verdict policy_of_name(const struct policy *p, const char *name, uint16_t port)
{
	enum verdict verdict = VERDICT_NONE;
	for (size_t i = 0; i < p->count; i++) {
		const struct egress_rule *r = &p->rules[i];
		if ((r->port && r->port != port) || !rule_has_name(r, name))
			continue;
		if (!r->denies)
			return VERDICT_ALLOWED;
		verdict = VERDICT_DENIED;
	}
	return verdict;
}

bool policy_is_brokered(const struct policy *p, const char *name, uint16_t port)
{
	for (size_t i = 0; p->brokers_names && i < p->count; i++)
		if ((!p->rules[i].port || p->rules[i].port == port) &&
			rule_is_brokered(&p->rules[i], name))
			return true;
	return false;
}

enum verdict policy_of_address(const struct policy *p, const struct address_port *a)
{
	const struct address address = address_translated(&a->address);
	enum verdict verdict = VERDICT_NONE;
	for (size_t i = 0; i < p->count; i++) {
		const struct egress_rule *r = &p->rules[i];
		if ((r->port && r->port != a->port) ||
			(!rule_has_address(r, &address) && !rule_has_address(r, &a->address)))
			continue;
		if (!r->denies)
			return VERDICT_ALLOWED;
		verdict = VERDICT_DENIED;
	}
	return verdict;
}

/* Who may reach every address may ask for every name. */
static bool rule_is_everything(const struct egress_rule *r)
{
	return r->kind == RULE_RANGE && !r->port && (r->range.bits == 0 || r->range.bits == 96);
}

bool policy_resolves(const struct policy *p, const char *name)
{
	bool denied = false;
	if (p->mode == NETWORK_NONE || p->mode == NETWORK_OPEN)
		return p->mode == NETWORK_OPEN;
	for (size_t i = 0; i < p->count; i++) {
		const struct egress_rule *r = &p->rules[i];
		if (!r->denies && (rule_has_name(r, name) || rule_is_everything(r)))
			return true;
		denied |= r->denies && !r->port && rule_has_name(r, name);
	}
	return p->mode == NETWORK_DENY && !denied;
}

static bool range_was_opened(const struct egress_config *c, const struct address_range *r)
{
	for (uint32_t i = 0; i < c->private_count; i++)
		if (address_range_is_in(r, &c->private_ranges[i]))
			return true;
	return false;
}

bool policy_opens(const struct policy *p, const struct egress_config *c,
	const struct address *address, uint16_t port)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct egress_rule *r = &p->rules[i];
		if (!r->denies && (!r->port || !port || r->port == port) &&
			rule_has_address(r, address) && range_was_opened(c, &r->range))
			return true;
	}
	return false;
}
