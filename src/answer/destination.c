#include "answer/destination.h"

#include <stdio.h>
#include <string.h>

#define PORT_DIGITS_MAX 5

bool destination_parse_id(const char *name, char ret[ID_SIZE])
{
	char id[ID_SIZE];
	if (strcspn(name, "-") != ID_LEN)
		return false;
	memcpy(id, name, ID_LEN);
	id[ID_LEN] = '\0';
	if (!id_is_valid(id))
		return false;
	memcpy(ret, id, ID_SIZE);
	return true;
}

/* A number that is no port is stored nevertheless: it is a port that no service has. */
static bool destination_parse_port(const char *text, size_t len, unsigned *ret)
{
	unsigned port = 0;
	if (len == 0 || len > PORT_DIGITS_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		port = port * 10 + (unsigned)(text[i] - '0');
	}
	*ret = port;
	return port > 0 && port < 65536;
}

bool destination_in_host(const struct http_request *req, struct http_destination *ret)
{
	const char *host = http_header(req, "host");
	struct http_destination d = {0};
	if (!host)
		return false;
	size_t digits = strspn(host, "0123456789");
	const char *id = host + digits + 1;
	if (host[digits] != '-' || !destination_parse_port(host, digits, &d.port))
		return false;
	if (strcspn(id, ".:") != ID_LEN || id[ID_LEN] != '.')
		return false;
	memcpy(d.id, id, ID_LEN);
	memcpy(d.name, id, ID_LEN);
	if (!id_is_valid(d.id))
		return false;
	*ret = d;
	return true;
}

bool destination_in_headers(const struct http_request *req, const struct destination_headers *names,
	struct http_destination *ret)
{
	const char *name = http_header(req, names->id);
	if (!name)
		return false;
	const char *port = http_header(req, names->port);
	*ret = (struct http_destination){.port = names->default_port};
	snprintf(ret->name, sizeof ret->name, "%s", name);
	if (!port || destination_parse_port(port, strlen(port), &ret->port))
		destination_parse_id(name, ret->id);
	return true;
}
