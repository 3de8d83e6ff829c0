#include "answer/own_url.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "answer/dialect.h"

/* ---- parts ---- */

static bool own_url_copy(char *to, size_t size, const char *text, size_t len, const char *allowed)
{
	if (len == 0 || len >= size)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!strchr(allowed, text[i]))
			return false;
	memcpy(to, text, len);
	to[len] = '\0';
	return true;
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static bool own_url_take_authority(struct own_url *url, const char *text, size_t len)
{
	return own_url_copy(url->authority, sizeof url->authority, text, len, LETTERS "-._:[]");
}

static bool own_url_take_scheme(struct own_url *url, const char *text, size_t len)
{
	bool secure = len == 5 && strncasecmp(text, "https", 5) == 0;
	if (!secure && !(len == 4 && strncasecmp(text, "http", 4) == 0))
		return false;
	url->secure = secure;
	return true;
}

/* "/" is none. */
static bool own_url_take_prefix(struct own_url *url, const char *text, size_t len)
{
	while (len > 0 && text[len - 1] == '/')
		len--;
	if (len == 0)
		return true;
	return text[0] == '/' && text[1] != '/' &&
	       own_url_copy(url->prefix, sizeof url->prefix, text, len, LETTERS "-._~/");
}

int own_url_parse(const char *text, struct own_url *ret)
{
	struct own_url url = {0};
	size_t scheme = strcspn(text, ":");
	if (strncmp(text + scheme, "://", 3) != 0 || !own_url_take_scheme(&url, text, scheme))
		return -EINVAL;
	const char *authority = text + scheme + 3;
	size_t len = strcspn(authority, "/");
	if (!own_url_take_authority(&url, authority, len) ||
		!own_url_take_prefix(&url, authority + len, strlen(authority + len)))
		return -EINVAL;
	*ret = url;
	return 0;
}

int own_url_parse_trusted(const char *list, struct own_url_config *ret)
{
	ret->trusted_count = 0;
	if (strcmp(list, "none") == 0)
		return 0;
	while (*list) {
		char entry[ADDRESS_TEXT_SIZE];
		size_t len = strcspn(list, ",");
		if (ret->trusted_count == OWN_URL_TRUSTED_MAX)
			return -E2BIG;
		if (len >= sizeof entry)
			return -EINVAL;
		memcpy(entry, list, len);
		entry[len] = '\0';
		if (address_parse_range(entry, &ret->trusted[ret->trusted_count]) < 0)
			return -EINVAL;
		ret->trusted_count++;
		list += len + (list[len] == ',');
	}
	return 0;
}

/* ---- what a proxy says ---- */

static bool own_url_is_trusted(const struct own_url_config *c, const struct http_request *req)
{
	struct address from;
	if (!http_client_address(req, &from))
		return false;
	for (size_t i = 0; i < c->trusted_count; i++)
		if (address_is_in(&from, &c->trusted[i]))
			return true;
	return false;
}

/* Of a list, what the proxy next to the client said: the first. */
static const char *own_url_first(const char *list, size_t *len)
{
	if (!list)
		return NULL;
	list += strspn(list, " \t");
	*len = strcspn(list, ",");
	while (*len > 0 && strchr(" \t", list[*len - 1]))
		--*len;
	return list;
}

/* One pair of a Forwarded; returns what is behind it. */
static const char *own_url_take_pair(struct own_url *url, const char *pair)
{
	pair += strspn(pair, " \t;");
	size_t name = strcspn(pair, "=;,");
	const char *value = pair + name + (pair[name] == '=');
	bool quoted = *value == '"';
	value += quoted;
	size_t len = strcspn(value, quoted ? "\"" : ";, \t");
	if (name == 4 && strncasecmp(pair, "host", 4) == 0)
		own_url_take_authority(url, value, len);
	if (name == 5 && strncasecmp(pair, "proto", 5) == 0)
		own_url_take_scheme(url, value, len);
	value += len;
	value += quoted && *value == '"';
	return value + strcspn(value, ";,");
}

static void own_url_take_forwarded(struct own_url *url, const char *header)
{
	while (header && *header && *header != ',')
		header = own_url_take_pair(url, header);
}

static void own_url_take_proxy(struct own_url *url, const struct http_request *req)
{
	size_t len = 0;
	own_url_take_forwarded(url, http_header(req, "forwarded"));
	const char *value = own_url_first(http_header(req, "x-forwarded-host"), &len);
	if (value)
		own_url_take_authority(url, value, len);
	value = own_url_first(http_header(req, "x-forwarded-proto"), &len);
	if (value)
		own_url_take_scheme(url, value, len);
	value = own_url_first(http_header(req, "x-forwarded-prefix"), &len);
	if (value)
		own_url_take_prefix(url, value, len);
}

/* ---- all of it ---- */

/* Whether others than the request itself said it. */
static bool own_url_find(const struct http_request *req, struct own_url *ret)
{
	const struct own_url_config *c = server_of(req)->own_urls;
	const char *host = http_header(req, "host");
	*ret = (struct own_url){.secure = http_is_secure(req)};
	if (own_url_is_trusted(c, req))
		own_url_take_proxy(ret, req);
	if (ret->authority[0])
		return true;
	if (c->public_url.authority[0]) {
		*ret = c->public_url;
		return true;
	}
	if (!host || !own_url_take_authority(ret, host, strlen(host)))
		own_url_take_authority(ret, "127.0.0.1", strlen("127.0.0.1"));
	return false;
}

static void own_url_put_scheme(struct buf *out, const struct own_url *url)
{
	buf_append_str(out, url->secure ? "https://" : "http://");
}

void own_url_append(struct buf *out, const struct http_request *req)
{
	struct own_url url;
	own_url_find(req, &url);
	own_url_put_scheme(out, &url);
	buf_append_str(out, url.authority);
	buf_append_str(out, url.prefix);
}

void own_url_append_scheme(struct buf *out, const struct http_request *req)
{
	struct own_url url;
	own_url_find(req, &url);
	own_url_put_scheme(out, &url);
}

/* The port behind a host, with its colon; "": the usual one. */
static const char *own_url_port(const struct own_url *url)
{
	const char *end = strrchr(url->authority, ']');
	const char *colon = strchr(end ? end : url->authority, ':');
	return colon ? colon : "";
}

void own_url_append_sandbox_domain(struct buf *out, const struct http_request *req)
{
	const struct server *server = server_of(req);
	struct own_url url;
	if (!own_url_find(req, &url) || strchr(server->domain, ':')) {
		buf_append_str(out, server->sandbox_domain);
		return;
	}
	buf_append_str(out, server->domain);
	buf_append_str(out, own_url_port(&url));
}
