#include "server/network.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"

#define NAMES_PORT  53
#define RESOLV_CONF "/etc/resolv.conf"
#define RESOLV_MAX  16384
#define ENTRY_SIZE  64

/* The next entry of a list of words; false at its end. */
static bool next_entry(const char **list, const char *separators, char out[ENTRY_SIZE])
{
	*list += strspn(*list, separators);
	size_t len = strcspn(*list, separators);
	snprintf(out, ENTRY_SIZE, "%.*s", (int)len, *list);
	*list += len;
	return len > 0;
}

int network_add_resolvers(struct egress_config *c, const char *list, struct error *e)
{
	char entry[ENTRY_SIZE];
	while (next_entry(&list, ", ", entry)) {
		if (c->resolver_count == EGRESS_RESOLVERS_MAX)
			return error_set(e, ERROR_INVALID_REQUEST, "more than %d resolvers",
				EGRESS_RESOLVERS_MAX);
		if (address_parse_port(entry, NAMES_PORT, &c->resolvers[c->resolver_count]) < 0)
			return error_set(e, ERROR_INVALID_REQUEST,
				"--resolver: '%s' is no address, such as 192.0.2.1 or [2001:db8::1]:5353",
				entry);
		c->resolver_count++;
	}
	return 0;
}

/* Adds the ranges of a list, whose option is named in errors. */
static int add_ranges(const char *option, const char *list, struct address_range *ranges,
	uint32_t *count, struct error *e)
{
	char entry[ENTRY_SIZE];
	while (next_entry(&list, ", ", entry)) {
		struct address_range range;
		if (*count == EGRESS_RANGES_MAX)
			return error_set(e, ERROR_INVALID_REQUEST, "%s: more than %d networks",
				option, EGRESS_RANGES_MAX);
		if (address_parse_range(entry, &range) < 0)
			return error_set(e, ERROR_INVALID_REQUEST,
				"%s: '%s' is no range, such as 198.51.100.0/24", option, entry);
		if (address_range_has_never(&range))
			return error_set(e, ERROR_INVALID_REQUEST,
				"%s: '%s' has loopback, link-local, metadata or multicast "
				"addresses in it, which no sandbox may reach",
				option, entry);
		ranges[(*count)++] = range;
	}
	return 0;
}

int network_add_public(struct egress_config *c, const char *list, struct error *e)
{
	return add_ranges("--public-networks", list, c->public_ranges, &c->public_count, e);
}

int network_add_private(struct egress_config *c, const char *list, struct error *e)
{
	return add_ranges("--private-networks", list, c->private_ranges, &c->private_count, e);
}

void network_find_resolvers(struct egress_config *c)
{
	autobuf text = {0};
	char *save = NULL, entry[ENTRY_SIZE];
	if (c->resolver_count > 0 || fd_read_file_at(AT_FDCWD, RESOLV_CONF, &text, RESOLV_MAX) < 0)
		return;
	buf_append_char(&text, '\0');
	for (char *line = text.failed ? NULL : strtok_r(text.data, "\n", &save);
		line && c->resolver_count < EGRESS_RESOLVERS_MAX;
		line = strtok_r(NULL, "\n", &save)) {
		const char *rest = line + strlen("nameserver");
		struct address_port *to = &c->resolvers[c->resolver_count];
		if (strncmp(line, "nameserver", strlen("nameserver")) == 0 &&
			next_entry(&rest, " \t", entry) &&
			address_parse_port(entry, NAMES_PORT, to) == 0)
			c->resolver_count++;
	}
}
