#include "dialect/preview/access.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "answer/dialect.h"
#include "answer/port_token.h"

/* ---- keys ---- */

int preview_admit_key(struct http_request *req, struct error *e)
{
	struct error why;
	if (auth_is_disabled(server_of(req)->auth) || dialect_admit_key(req, &why) == 0)
		return 0;
	if (why.code != ERROR_SCOPE_MISSING)
		return 0;
	*e = why;
	return -1;
}

/* ---- cookies ---- */

/* Returns the length of the cookie at p, with what separates it from the next. */
static size_t cookie_length(const char *p)
{
	size_t n = strcspn(p, ";");
	return n + strspn(p + n, "; ");
}

static bool is_our_cookie(const char *p)
{
	size_t len = strlen(PREVIEW_COOKIE);
	return strncmp(p, PREVIEW_COOKIE, len) == 0 && p[len] == '=';
}

static const char *token_in_cookies(struct http_request *req)
{
	const char *name, *value;
	for (size_t i = 0; http_header_at(req, i, &name, &value); i++) {
		if (strcasecmp(name, "cookie") != 0)
			continue;
		for (const char *p = value; *p; p += cookie_length(p)) {
			if (!is_our_cookie(p))
				continue;
			const char *token = p + strlen(PREVIEW_COOKIE) + 1;
			char *copy = http_copy(req, token);
			copy[strcspn(copy, "; ")] = '\0';
			return copy;
		}
	}
	return NULL;
}

/* Returns whether anything is left. */
static bool strip_cookies(struct http_request *req, const char **value)
{
	char *out = http_alloc(req, strlen(*value) + 1), *at = out;
	for (const char *p = *value; *p; p += cookie_length(p)) {
		if (is_our_cookie(p))
			continue;
		size_t n = cookie_length(p);
		memcpy(at, p, n);
		at += n;
	}
	while (at > out && strchr("; ", at[-1]))
		at--;
	*at = '\0';
	*value = out;
	return out[0];
}

/* ---- all together ---- */

/* A key that has let the request in stays what it is known by. */
static bool preview_is_traffic_token(struct http_request *req, const char *token, const char *id)
{
	const struct auth *auth = server_of(req)->auth;
	char opened[ID_SIZE], mark[AUTH_MARK_SIZE];
	struct error e;
	return auth_open_token(auth, TRAFFIC_TOKEN, token, opened, mark) &&
	       strcmp(opened, id) == 0 &&
	       (auth_tenant(req) || auth_admit_mark(auth, req, mark, &e) == 0);
}

void preview_find_access(struct http_request *req, bool by_host, struct preview_access *out)
{
	const struct auth *auth = server_of(req)->auth;
	const struct http_destination *d = http_destination(req);
	const char *traffic = http_header(req, PREVIEW_TRAFFIC_HEADER);
	bool anybody = auth_is_disabled(auth);
	*out = (struct preview_access){.tenant = anybody ? "default" : auth_tenant(req),
		.token = http_header(req, PREVIEW_TOKEN_HEADER)};
	if (!out->token) {
		out->token = http_query(req, PREVIEW_TOKEN_QUERY);
		out->in_query = out->token;
	}
	if (!out->token && by_host)
		out->token = token_in_cookies(req);
	if (out->token && !port_token_open(auth, d->id, d->port, out->token, out->token_id))
		out->token_id[0] = '\0';
	out->holds_traffic_token = traffic && preview_is_traffic_token(req, traffic, d->id);
}

const char *preview_strip_query(struct http_request *req, const char *target)
{
	size_t path = strcspn(target, "?"), len = strlen(PREVIEW_TOKEN_QUERY);
	char *out = http_copy(req, target), *at = out + path;
	char separator = '?';
	for (const char *p = target + path; *p; p += strcspn(p + 1, "&") + 1) {
		size_t n = strcspn(p + 1, "&");
		if (strncmp(p + 1, PREVIEW_TOKEN_QUERY, len) == 0 &&
			(p[1 + len] == '=' || n == len))
			continue;
		*at++ = separator;
		memmove(at, p + 1, n);
		at += n;
		separator = '&';
	}
	*at = '\0';
	return out;
}

bool preview_passes_field(
	struct http_request *req, bool by_host, const char *name, const char **value)
{
	static const char *const own[] = {
		PREVIEW_TOKEN_HEADER, PREVIEW_TRAFFIC_HEADER, "e2b-sandbox-id", "e2b-sandbox-port"};
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (strcasecmp(name, own[i]) == 0)
			return false;
	if (strcasecmp(name, "cookie") == 0)
		return by_host && strip_cookies(req, value);
	/* A key that has let the request in, and what might be the same one in the other field. */
	if (strcasecmp(name, "x-api-key") == 0)
		return !auth_tenant(req);
	if (strcasecmp(name, "authorization") == 0)
		return !auth_tenant(req) || strncasecmp(*value, "Bearer ", 7) != 0;
	return true;
}
