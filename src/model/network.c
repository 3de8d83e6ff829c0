/*
 * Lists of what a sandbox may reach. An entry is parsed here and nowhere else. What could be taken
 * for an address by one program and for a name by another ("127.1", "0x7f.1") is neither.
 */
#include "model/network.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "wire/rule.h"

#define PRESET     "preset:"
#define ENTRY_SIZE 320

const char *const network_mode_names[] = {[NETWORK_NONE] = "none",
	[NETWORK_OPEN] = "open",
	[NETWORK_ALLOW] = "allow",
	[NETWORK_DENY] = "deny",
	NULL};

/* The same rows as those of a sandbox whose names begin with "network.". */
static const struct field network_rows[] = {
	{.name = "mode",
		FIELD_AT(ENUM, struct network_settings, mode),
		.flags = FIELD_SETTING | FIELD_REQUIRED,
		.names = network_mode_names},
	{.name = "allow",
		FIELD_AT(LIST, struct network_settings, allow),
		.flags = FIELD_SETTING | FIELD_OMIT_EMPTY,
		.max = NETWORK_LIST_MAX},
	{.name = "deny",
		FIELD_AT(LIST, struct network_settings, deny),
		.flags = FIELD_SETTING | FIELD_OMIT_EMPTY,
		.max = NETWORK_LIST_MAX},
	{.name = "rules",
		FIELD_AT(HEADERS, struct network_settings, rules),
		.flags = FIELD_SETTING | FIELD_OMIT_EMPTY,
		.max = RULES_HOSTS_MAX},
};

const struct field_table network_model = {
	network_rows, ARRAY_LEN(network_rows), sizeof(struct network_settings)};

/* The hosts that package managers and their likes need. None that everybody can put data on. */
static const struct {
	const char *name;
	const char *entries[12];
} presets[] = {
	{"npm", {"registry.npmjs.org", "registry.yarnpkg.com", "nodejs.org"}},
	{"pypi", {"pypi.org", "files.pythonhosted.org", "pypi.python.org"}},
	{"debian", {"deb.debian.org", "security.debian.org", "ftp.debian.org",
			   "snapshot.debian.org", "cdn-fastly.deb.debian.org"}},
	{"github", {"github.com", "*.github.com", "githubusercontent.com",
			   "*.githubusercontent.com", "github.githubassets.com", "ghcr.io"}},
	{"go", {"proxy.golang.org", "sum.golang.org", "index.golang.org", "golang.org", "go.dev"}},
	{"crates", {"crates.io", "index.crates.io", "static.crates.io", "static.rust-lang.org"}},
	{"cargo", {"crates.io", "index.crates.io", "static.crates.io", "static.rust-lang.org"}},
};

static const char *const *preset_find(const char *entry)
{
	if (strncmp(entry, PRESET, strlen(PRESET)) != 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(presets); i++)
		if (strcmp(presets[i].name, entry + strlen(PRESET)) == 0)
			return presets[i].entries;
	return NULL;
}

/* ---- one entry ---- */

static bool label_is_number(const char *label)
{
	bool hex = label[0] == '0' && label[1] == 'x';
	return label[strspn(label, hex ? "0123456789abcdefx" : "0123456789")] == '\0';
}

bool network_settle_name(char *name)
{
	size_t len = strlen(name);
	if (len > 0 && name[len - 1] == '.')
		name[--len] = '\0';
	if (len == 0 || len > RULE_NAME_MAX)
		return false;
	const char *label = name;
	for (char *p = name; *p; p++) {
		*p = (char)tolower((unsigned char)*p);
		if (*p == '.' && (p == label || p - label > 63))
			return false;
		if (*p == '.')
			label = p + 1;
		else if (!isalnum((unsigned char)*p) && *p != '-' && *p != '_')
			return false;
	}
	return *label && strlen(label) <= 63 && !label_is_number(label);
}

static int parse_port(const char *text, uint16_t *ret)
{
	size_t len = strspn(text, "0123456789");
	unsigned long port = strtoul(text, NULL, 10);
	if (len == 0 || len > 5 || text[len] || text[0] == '0' || port > 65535)
		return -EINVAL;
	*ret = (uint16_t)port;
	return 0;
}

/* Splits "host", "host:port", "[range]" and "[range]:port" in place; IPv6 without brackets has no
 * port. */
static char *split_port(char *text, uint16_t *port)
{
	char *end = strchr(text, ']'), *colon = strrchr(text, ':');
	if (text[0] == '[') {
		if (!end || (end[1] && (end[1] != ':' || parse_port(end + 2, port) < 0)))
			return NULL;
		*end = '\0';
		return strchr(text + 1, ':') ? text + 1 : NULL;
	}
	if (!colon || strchr(text, ':') != colon)
		return text;
	*colon = '\0';
	return parse_port(colon + 1, port) < 0 ? NULL : text;
}

/* Parses an entry that is no preset; its name lies in `space`. */
static int rule_parse(const char *entry, char space[ENTRY_SIZE], struct egress_rule *ret)
{
	*ret = (struct egress_rule){0};
	if (strlen(entry) >= ENTRY_SIZE)
		return -EINVAL;
	snprintf(space, ENTRY_SIZE, "%s", entry);
	char *host = split_port(space, &ret->port);
	if (!host)
		return -EINVAL;
	ret->kind = RULE_RANGE;
	if (address_parse_range(host, &ret->range) == 0)
		return 0;
	bool below = strncmp(host, "*.", 2) == 0;
	ret->kind = below ? RULE_BELOW : RULE_NAME;
	ret->name = host + (below ? 2 : 0);
	return network_settle_name(host + (below ? 2 : 0)) ? 0 : -EINVAL;
}

bool network_entry_is_name(const char *entry)
{
	char space[ENTRY_SIZE];
	struct egress_rule rule;
	return rule_parse(entry, space, &rule) < 0 || rule.kind != RULE_RANGE;
}

/* ---- lists ---- */

static bool range_is_opened(
	const struct address_range *r, const struct address_range *opened, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (address_range_is_in(r, &opened[i]))
			return true;
	return false;
}

/* A wider range may have closed addresses in it: they stay closed. */
static int check_range(const struct address_range *r, const char *entry,
	const struct address_range *opened, size_t opened_count, struct error *e)
{
	switch (address_range_class(r)) {
	case ADDRESS_NEVER:
		return error_set_field(e, ERROR_INVALID_FIELD, "network.allow",
			"\"network.allow\": no sandbox may reach '%s'", entry);
	case ADDRESS_LOCAL:
		if (range_is_opened(r, opened, opened_count))
			return 0;
		return error_set_field(e, ERROR_INVALID_FIELD, "network.allow",
			"\"network.allow\": '%s' is private, and the operator did not open it "
			"(--private-networks)",
			entry);
	default:
		return 0;
	}
}

static int check_entry(const char *entry, bool denies, const struct address_range *opened,
	size_t opened_count, struct error *e)
{
	char space[ENTRY_SIZE];
	struct egress_rule rule;
	const char *field = denies ? "network.deny" : "network.allow";
	if (strncmp(entry, PRESET, strlen(PRESET)) == 0 && !denies)
		return preset_find(entry) ? 0
					  : error_set_field(e, ERROR_INVALID_FIELD, field,
						    "\"%s\": there is no '%.64s'", field, entry);
	if (rule_parse(entry, space, &rule) < 0)
		return error_set_field(e, ERROR_INVALID_FIELD, field,
			"\"%s\": '%.64s' is no name, *.name, address or range, with :port or "
			"without (IPv6 in brackets), in ASCII",
			field, entry);
	if (denies || rule.kind != RULE_RANGE)
		return 0;
	return check_range(&rule.range, entry, opened, opened_count, e);
}

static int check_list(const struct strings *list, bool denies, const struct address_range *opened,
	size_t opened_count, struct error *e)
{
	size_t count = 0;
	for (size_t at = 0; at < list->len; at += strlen(list->data + at) + 1) {
		if (++count > NETWORK_LIST_MAX)
			return error_set_field(e, ERROR_INVALID_FIELD,
				denies ? "network.deny" : "network.allow",
				"a list must not have more than %d entries", NETWORK_LIST_MAX);
		if (check_entry(list->data + at, denies, opened, opened_count, e) < 0)
			return -1;
	}
	return 0;
}

int network_check_lists(const struct network_settings *n, const struct address_range *opened,
	size_t opened_count, struct error *e)
{
	const char *mode = network_mode_names[n->mode];
	if (n->allow.len > 0 && n->mode != NETWORK_ALLOW && n->mode != NETWORK_DENY)
		return error_set_field(e, ERROR_INVALID_FIELD, "network.allow",
			"\"network.allow\" is for the modes allow and deny, and not for %s", mode);
	if (n->deny.len > 0 && n->mode != NETWORK_DENY)
		return error_set_field(e, ERROR_INVALID_FIELD, "network.deny",
			"\"network.deny\" is for the mode deny, and not for %s", mode);
	if (check_list(&n->allow, false, opened, opened_count, e) < 0 ||
		check_list(&n->deny, true, opened, opened_count, e) < 0)
		return -1;
	return rules_check(&n->rules, e);
}

static void pack_entry(struct buf *out, const char *entry, bool denies)
{
	char space[ENTRY_SIZE];
	struct egress_rule rule;
	const char *const *preset = preset_find(entry);
	for (; preset && *preset; preset++)
		pack_entry(out, *preset, denies);
	if (strncmp(entry, PRESET, strlen(PRESET)) == 0 || rule_parse(entry, space, &rule) < 0)
		return;
	rule.denies = denies;
	rule_pack(out, &rule);
}

void network_pack_rules(const struct network_settings *n, struct buf *out)
{
	for (size_t at = 0; at < n->allow.len; at += strlen(n->allow.data + at) + 1)
		pack_entry(out, n->allow.data + at, false);
	for (size_t at = 0; at < n->deny.len; at += strlen(n->deny.data + at) + 1)
		pack_entry(out, n->deny.data + at, true);
	rules_pack_hosts(&n->rules, out);
}
