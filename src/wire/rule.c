#include "wire/rule.h"

#include <errno.h>
#include <string.h>

#define V4_BITS 96 /* before an IPv4 address */

/* What stands before a name with its NUL, or an address and the bits of its prefix. */
struct rule_head {
	uint8_t kind, denies;
	uint16_t port;
	uint16_t len;
};

void rule_pack(struct buf *out, const struct egress_rule *rule)
{
	bool is_range = rule->kind == RULE_RANGE;
	const struct rule_head head = {.kind = (uint8_t)rule->kind,
		.denies = rule->denies,
		.port = rule->port,
		.len = (uint16_t)(is_range ? sizeof rule->range.first + 1
					   : strlen(rule->name) + 1)};
	buf_append(out, &head, sizeof head);
	if (is_range) {
		buf_append(out, &rule->range.first, sizeof rule->range.first);
		buf_append_char(out, (char)rule->range.bits);
	} else {
		buf_append(out, rule->name, head.len);
	}
}

static bool rule_unpack_range(const uint8_t *data, size_t len, struct address_range *ret)
{
	if (len != sizeof ret->first + 1 || data[sizeof ret->first] > 128)
		return false;
	memcpy(&ret->first, data, sizeof ret->first);
	ret->bits = data[sizeof ret->first];
	return true;
}

int rule_unpack(const uint8_t *data, size_t len, size_t *at, struct egress_rule *ret)
{
	struct rule_head head;
	if (*at == len)
		return 0;
	if (len - *at < sizeof head)
		return -EINVAL;
	memcpy(&head, data + *at, sizeof head);
	const uint8_t *body = data + *at + sizeof head;
	if (head.kind >= RULE_KIND_COUNT || head.len > len - *at - sizeof head || head.len < 2)
		return -EINVAL;
	*ret = (struct egress_rule){
		.kind = (enum rule_kind)head.kind, .denies = head.denies != 0, .port = head.port};
	*at += sizeof head + head.len;
	if (ret->kind == RULE_RANGE)
		return rule_unpack_range(body, head.len, &ret->range) ? 1 : -EINVAL;
	ret->name = (const char *)body;
	return head.len <= RULE_NAME_MAX + 1 && memchr(body, '\0', head.len) == body + head.len - 1
		       ? 1
		       : -EINVAL;
}

static bool name_is_below(const char *name, const char *above)
{
	size_t len = strlen(name), end = strlen(above);
	return len > end + 1 && name[len - end - 1] == '.' && strcmp(name + len - end, above) == 0;
}

bool rule_is_brokered(const struct egress_rule *rule, const char *name)
{
	if (rule->kind != RULE_BROKERED)
		return false;
	return strncmp(rule->name, "*.", 2) == 0 ? name_is_below(name, rule->name + 2)
						 : strcmp(rule->name, name) == 0;
}

bool rule_has_name(const struct egress_rule *rule, const char *name)
{
	if (rule->kind == RULE_NAME)
		return strcmp(rule->name, name) == 0;
	return rule->kind == RULE_BELOW && name_is_below(name, rule->name);
}

bool rule_has_address(const struct egress_rule *rule, const struct address *a)
{
	if (rule->kind != RULE_RANGE || (rule->range.bits < V4_BITS && address_is_v4(a)))
		return false;
	return address_is_in(a, &rule->range);
}
