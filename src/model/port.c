#include "model/port.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/sandbox.h"

#define AT(KIND, member) FIELD_AT(KIND, struct port_listener, member)

/* In the order of the answer. */
/* clang-format off */
static const struct field port_fields[] = {
	{.name = "port", AT(INTEGER, port), .flags = FIELD_SHOWN},
	{.name = "address", FIELD_CHARS_AT(struct port_listener, address), .flags = FIELD_SHOWN,
		.about = "That the socket is bound to; previews reach 127.0.0.1, ::1 and those for all addresses"},
	{.name = "public", AT(BOOL, is_public), .flags = FIELD_SHOWN, .about = "Everyone may see it"},
	{.name = "pid", AT(INTEGER, pid), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.about = "Of the first process that holds the socket; missing if none was found"},
	{.name = "command", FIELD_CHARS_AT(struct port_listener, command), .flags = FIELD_SHOWN | FIELD_OMIT_EMPTY,
		.about = "Its command line, cut at 127 bytes"},
};
/* clang-format on */

const struct field_table port_model = {
	port_fields, ARRAY_LEN(port_fields), sizeof(struct port_listener)};

bool port_grant_next(const char **at, struct port_grant *ret)
{
	char *end;
	if (!**at)
		return false;
	*ret = (struct port_grant){.port = strtoll(*at, &end, 10)};
	if (*end == ':' && strcspn(end + 1, ":,") == ID_LEN && end[1 + ID_LEN] == ':') {
		memcpy(ret->id, end + 1, ID_LEN);
		ret->expires_ms = strtoll(end + 2 + ID_LEN, &end, 10);
	}
	end += strcspn(end, ",");
	*at = end + (*end == ',');
	return true;
}

void port_grant_append(struct buf *out, const struct port_grant *grant)
{
	char text[ID_SIZE + 64];
	if (grant->id[0])
		snprintf(text, sizeof text, "%s%lld:%s:%lld", out->len ? "," : "",
			(long long)grant->port, grant->id, (long long)grant->expires_ms);
	else
		snprintf(text, sizeof text, "%s%lld", out->len ? "," : "", (long long)grant->port);
	buf_append_str(out, text);
}

bool port_grants_open(const char *grants, int64_t port, const char *token_id, int64_t now_ms)
{
	struct port_grant grant;
	for (const char *at = grants; port_grant_next(&at, &grant);) {
		if (grant.port != port)
			continue;
		if (!grant.id[0] ||
			(token_id && strcmp(grant.id, token_id) == 0 && grant.expires_ms > now_ms))
			return true;
	}
	return false;
}

int64_t port_grants_first_open(const char *grants)
{
	struct port_grant grant;
	for (const char *at = grants; port_grant_next(&at, &grant);)
		if (!grant.id[0])
			return grant.port;
	return 0;
}

bool port_is_public(const struct sandbox_view *view, int64_t port)
{
	return view->previews == PREVIEWS_PUBLIC ||
	       port_grants_open(view->port_grants, port, NULL, 0);
}

#define TCP_LISTEN 0x0a

/* Formats 8 or 32 hexadecimal digits, words of the machine's order. Returns false if malformed. */
static bool port_format_address(const char *digits, size_t len, char *out, size_t size)
{
	uint32_t words[4];
	if (len != 8 && len != 32)
		return false;
	for (size_t i = 0; i < len / 8; i++)
		if (sscanf(digits + 8 * i, "%8" SCNx32, &words[i]) != 1)
			return false;
	return inet_ntop(len == 8 ? AF_INET : AF_INET6, words, out, (socklen_t)size) != NULL;
}

/* The socket by which the sandbox's names are resolved (netns/namespace.c) is the server's. */
static bool port_is_resolver(const struct port_listener *l)
{
	return l->port == 53 && strcmp(l->address, "::ffff:192.0.2.53") == 0;
}

/* Reads "sl: local:port remote:port state ... uid timeout inode". */
static bool port_parse_listener(const char *line, struct port_listener *ret)
{
	char local[33], remote[33];
	unsigned port, state, uid;
	*ret = (struct port_listener){0};
	if (sscanf(line,
		    "%*u: %32[0-9A-F]:%4x %32[0-9A-F]:%*4x %2x %*x:%*x %*x:%*x %*x %u %*d %" SCNu64,
		    local, &port, remote, &state, &uid, &ret->inode) != 6)
		return false;
	ret->port = port;
	ret->uid = uid;
	return state == TCP_LISTEN && port != 0 &&
	       port_format_address(local, strlen(local), ret->address, sizeof ret->address) &&
	       !port_is_resolver(ret);
}

size_t port_parse_listeners(const char *text, struct port_listener *list, size_t count)
{
	for (const char *line = text; line && count < PORT_LISTENERS_MAX;) {
		if (port_parse_listener(line, &list[count]))
			count++;
		line = strchr(line, '\n');
		line += line != NULL;
	}
	return count;
}
