/*
 * Header rules: what bunker-broker adds to a sandbox's requests. They are texts one behind the
 * other, "HOST NAME: VALUE", those of a host together; HOST is a name or "*.name", and VALUE may
 * name secrets as "${secret:NAME}".
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/field.h"
#include "wire/rule.h"

#define RULES_HOSTS_MAX   100
#define RULES_HEADERS_MAX 20 /* of a host */
#define RULES_NAME_MAX    128
#define RULES_VALUE_MAX   4096
#define RULES_SECRETS_MAX 3     /* that a value names */
#define RULES_FILLED_MAX  16384 /* bytes of a value with its secrets */

/* Host and name are in lower case; the value is the text's. */
struct header_rule {
	char host[RULE_NAME_MAX + 1], name[RULES_NAME_MAX + 1];
	const char *value;
};

/* Returns -EINVAL if it is none. */
int header_rule_parse(const char *text, struct header_rule *ret);
/* Returns -1 with the field and a sentence if one is malformed, or if there are too many. */
int rules_check(const struct strings *rules, struct error *e);
/* Whether one of them names this secret. */
bool rules_name_secret(const struct strings *rules, const char *secret);
/* Appends, for bunker-egress, the hosts whose connections go to bunker-broker. */
void rules_pack_hosts(const struct strings *rules, struct buf *out);
