#include "model/rules.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/network.h"
#include "model/secret.h"

#define FIELD "network.rules"

/* What says where a request ends, or whose it is, is the client's and the broker's own. */
static const char *const reserved_names[] = {
	"host", "content-length", "transfer-encoding", "connection", "upgrade"};

/* Copies in lower case what stands before `end`. Returns false if it does not fit, or is empty. */
static bool rules_copy(const char *text, const char *end, char *out, size_t size)
{
	size_t len = (size_t)(end - text);
	if (len == 0 || len >= size)
		return false;
	for (size_t i = 0; i < len; i++)
		out[i] = (char)tolower((unsigned char)text[i]);
	out[len] = '\0';
	return true;
}

static bool rules_host_is_valid(char *host)
{
	bool below = strncmp(host, "*.", 2) == 0;
	return network_settle_name(host + (below ? 2 : 0));
}

/* A token, as RFC 9110 has it. */
static bool rules_name_is_valid(const char *name)
{
	return name[strspn(name, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")] == '\0';
}

static bool rules_value_is_valid(const char *value)
{
	struct error e;
	return strlen(value) <= RULES_VALUE_MAX && secret_check_value(value, FIELD, &e) == 0;
}

int header_rule_parse(const char *text, struct header_rule *ret)
{
	const char *space = strchr(text, ' '), *colon = space ? strchr(space, ':') : NULL;
	if (!colon || !rules_copy(text, space, ret->host, sizeof ret->host) ||
		!rules_copy(space + 1, colon, ret->name, sizeof ret->name))
		return -EINVAL;
	ret->value = colon + 1 + strspn(colon + 1, " \t");
	return 0;
}

/* ---- checks ---- */

/* The hosts that were seen, and of the last one the names. */
struct rules_seen {
	char hosts[RULES_HOSTS_MAX][RULE_NAME_MAX + 1];
	char names[RULES_HEADERS_MAX][RULES_NAME_MAX + 1];
	size_t host_count, name_count;
};

static int rules_refuse(const struct header_rule *r, const char *why, struct error *e)
{
	return error_set_field(e, ERROR_INVALID_FIELD, FIELD, "\"" FIELD "\": '%.80s', '%.40s': %s",
		r->host, r->name, why);
}

static int rules_check_references(const struct header_rule *r, struct error *e)
{
	char name[SECRET_NAME_MAX + 1];
	const char *at = r->value, *begin;
	int found, count = 0;
	while ((found = secret_find_reference(&at, &begin, name)) > 0)
		count++;
	if (found < 0)
		return rules_refuse(r, "a secret is named as ${secret:NAME}", e);
	return count > RULES_SECRETS_MAX ? rules_refuse(r, "a value may name three secrets", e) : 0;
}

static int rules_check_header(struct header_rule *r, struct error *e)
{
	if (!rules_host_is_valid(r->host))
		return rules_refuse(r, "the host must be a name or *.name, without a port", e);
	if (!rules_name_is_valid(r->name))
		return rules_refuse(r, "this is no name of a header", e);
	for (size_t i = 0; i < ARRAY_LEN(reserved_names); i++)
		if (strcmp(reserved_names[i], r->name) == 0)
			return rules_refuse(r, "a rule must not set this header", e);
	if (!rules_value_is_valid(r->value))
		return error_set_field(e, ERROR_INVALID_FIELD, FIELD,
			"\"" FIELD
			"\": '%.80s', '%.40s': the value must be one line of at most %d bytes, "
			"without control characters",
			r->host, r->name, RULES_VALUE_MAX);
	return rules_check_references(r, e);
}

static int rules_see_host(struct rules_seen *seen, const struct header_rule *r, struct error *e)
{
	if (seen->host_count > 0 && strcmp(seen->hosts[seen->host_count - 1], r->host) == 0)
		return 0;
	for (size_t i = 0; i < seen->host_count; i++)
		if (strcmp(seen->hosts[i], r->host) == 0)
			return rules_refuse(r, "the host has another rule", e);
	if (seen->host_count == RULES_HOSTS_MAX)
		return error_set_field(e, ERROR_INVALID_FIELD, FIELD,
			"\"" FIELD "\" must not have more than %d hosts", RULES_HOSTS_MAX);
	memcpy(seen->hosts[seen->host_count++], r->host, sizeof r->host);
	seen->name_count = 0;
	return 0;
}

static int rules_see_name(struct rules_seen *seen, const struct header_rule *r, struct error *e)
{
	for (size_t i = 0; i < seen->name_count; i++)
		if (strcmp(seen->names[i], r->name) == 0)
			return rules_refuse(r, "the header is there twice", e);
	if (seen->name_count == RULES_HEADERS_MAX)
		return error_set_field(e, ERROR_INVALID_FIELD, FIELD,
			"\"" FIELD "\": '%.80s' must not have more than %d headers", r->host,
			RULES_HEADERS_MAX);
	memcpy(seen->names[seen->name_count++], r->name, sizeof r->name);
	return 0;
}

int rules_check(const struct strings *rules, struct error *e)
{
	struct rules_seen seen = {.host_count = 0};
	struct header_rule r;
	for (size_t at = 0; at < rules->len; at += strlen(rules->data + at) + 1) {
		if (header_rule_parse(rules->data + at, &r) < 0)
			return error_set_field(e, ERROR_INVALID_FIELD, FIELD,
				"\"" FIELD
				"\": a rule has a host of at most %d bytes, and headers whose "
				"names have at most %d",
				RULE_NAME_MAX, RULES_NAME_MAX);
		if (rules_check_header(&r, e) < 0 || rules_see_host(&seen, &r, e) < 0 ||
			rules_see_name(&seen, &r, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- use ---- */

bool rules_name_secret(const struct strings *rules, const char *secret)
{
	char name[SECRET_NAME_MAX + 1];
	for (size_t i = 0; i < rules->len; i += strlen(rules->data + i) + 1) {
		const char *at = rules->data + i, *begin;
		while (secret_find_reference(&at, &begin, name) > 0)
			if (strcmp(name, secret) == 0)
				return true;
	}
	return false;
}

void rules_pack_hosts(const struct strings *rules, struct buf *out)
{
	char last[RULE_NAME_MAX + 1] = "";
	struct header_rule r;
	for (size_t at = 0; at < rules->len; at += strlen(rules->data + at) + 1) {
		if (header_rule_parse(rules->data + at, &r) < 0 || !rules_host_is_valid(r.host) ||
			strcmp(last, r.host) == 0)
			continue;
		memcpy(last, r.host, sizeof last);
		rule_pack(out, &(struct egress_rule){.kind = RULE_BROKERED, .name = r.host});
	}
}
