/* Finds the port that a request is for, and passes the request on. */
#include "dialect/preview/preview.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "answer/answer.h"
#include "dialect/preview/access.h"
#include "dialect/preview/error.h"
#include "http/pass.h"

#define CLAIM_HOST    1u
#define TARGET_PREFIX 3 /* segments before the port's own path: p, the id, the port */
#define LOCATION_MAX  8448

struct preview {
	bool by_host;
	bool has_key;
	struct answer_pass pass;
};

/* ---- which requests ---- */

static unsigned preview_claims(const struct http_request *req)
{
	const struct http_destination *d = http_destination(req);
	return d && !d->reserved ? CLAIM_HOST : 0;
}

/* Sets the destination of the form with a path. */
static int preview_admit_path(struct http_request *req, struct error *e)
{
	const char *port = http_param(req, "port"), *name = http_param(req, "id");
	struct http_destination d = {0};
	char *end;
	unsigned long number = strtoul(port, &end, 10);
	if (port[0] < '1' || port[0] > '9' || *end || number > 65535)
		return error_set(e, ERROR_NOT_FOUND, "there is no such port");
	d.port = (unsigned)number;
	snprintf(d.name, sizeof d.name, "%s", name);
	if (id_is_valid(name))
		memcpy(d.id, name, ID_SIZE);
	http_set_destination(req, &d);
	/* Without keys the API's own rules hold against pages of other sites. */
	return auth_is_disabled(server_of(req)->auth) ? dialect_admit_key(req, e)
						      : preview_admit_key(req, e);
}

/*
 * Without keys every page in a browser could see previews by rebinding a name of its own: the
 * area's guard (auth_guard_name) has refused names that do not lead to this machine by themselves.
 */
static int preview_admit_host(struct http_request *req, struct error *e)
{
	if (!auth_is_disabled(server_of(req)->auth))
		return preview_admit_key(req, e);
	return destination_in_host(req, &(struct http_destination){0}) ? 0
								       : dialect_admit_key(req, e);
}

/* ---- fields ---- */

static bool preview_request_field(void *arg, const char *name, const char **value)
{
	struct answer *a = arg;
	const struct preview *p = a->own;
	return preview_passes_field(a->req, p->by_host, name, value);
}

/* A cookie for the whole domain would be seen by every other preview. */
static bool strip_cookie_domain(struct http_request *req, const char **value)
{
	char *out = http_copy(req, *value), *at = out;
	for (const char *p = *value; *p;) {
		size_t n = strcspn(p, ";");
		n += p[n] == ';';
		size_t skip = strspn(p, " ");
		if (strncasecmp(p + skip, "domain", 6) != 0 ||
			(p[skip + 6] != '=' && p[skip + 6] != ' ')) {
			memmove(at, p, n);
			at += n;
		}
		p += n;
	}
	*at = '\0';
	*value = out;
	return true;
}

static bool preview_answer_field(void *arg, const char *name, const char **value)
{
	struct answer *a = arg;
	const struct preview *p = a->own;
	if (strcasecmp(name, "set-cookie") == 0)
		return p->by_host && strip_cookie_domain(a->req, value);
	if (!p->by_host && (strcasecmp(name, "content-security-policy") == 0 ||
				   strcasecmp(name, "service-worker-allowed") == 0 ||
				   strcasecmp(name, "clear-site-data") == 0))
		return false;
	return true;
}

/* ---- passing on ---- */

/* Without a key nobody learns which sandboxes there are. */
static enum answer_failure preview_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	const struct preview *p = a->own;
	if (event && event->reason == OP_NO_SANDBOX && !p->has_key)
		error_set(e, ERROR_UNAUTHORIZED,
			"this preview needs an API key, or a token of the port");
	return ANSWER_ERROR;
}

/* The token goes into a cookie, and the browser comes again by a URL that can be shown. */
static void preview_keep_token(struct http_request *req, const char *token, const char *target)
{
	char cookie[512];
	snprintf(
		cookie, sizeof cookie, PREVIEW_COOKIE "=%s; Path=/; HttpOnly; SameSite=Lax", token);
	http_add_header(req, "Set-Cookie", cookie);
	http_add_header(req, "Location", target);
	http_add_header(req, "Cache-Control", "no-store");
	http_respond(req, 303, NULL, NULL);
}

static bool preview_is_navigation(const struct http_request *req)
{
	const char *accept = http_header(req, "accept");
	return http_method(req) == HTTP_GET && accept && strstr(accept, "text/html");
}

static void preview_serve(struct http_request *req, bool by_host, const char *target)
{
	static const struct answer_form form = {
		.own_size = sizeof(struct preview), .fail = preview_fail};
	const struct http_destination *d = http_destination(req);
	struct preview_access access;
	preview_find_access(req, by_host, &access);
	if (access.in_query)
		target = preview_strip_query(req, target);
	if (access.in_query && access.token_id[0] && by_host && preview_is_navigation(req)) {
		preview_keep_token(req, access.token, target);
		return;
	}
	if (!by_host)
		http_add_header(req, "Content-Security-Policy",
			"sandbox allow-downloads allow-forms allow-modals allow-pointer-lock "
			"allow-popups allow-scripts");
	struct answer *a = answer_new(req, &form);
	struct preview *p = a->own;
	p->by_host = by_host;
	p->has_key = access.tenant;
	p->pass = (struct answer_pass){.target = target,
		.request_field = preview_request_field,
		.answer_field = preview_answer_field};
	a->call.tenant = access.tenant;
	a->call.sandbox = d->id;
	struct op_port port = {.port = d->port,
		.holds_traffic_token = access.holds_traffic_token,
		.repeatable = http_pass_can_repeat(req)};
	memcpy(port.token, access.token_id, ID_SIZE);
	a->op = op_port(&a->call, &port);
	answer_run_pass(a, &p->pass);
}

static void handle_host(struct http_request *req)
{
	preview_serve(req, true, http_target(req));
}

static void handle_path(struct http_request *req)
{
	const char *target = http_target(req);
	for (unsigned i = 0; i < TARGET_PREFIX; i++)
		target = strchr(target + 1, '/');
	preview_serve(req, false, target);
}

/* Relative links of a page need the slash. */
static void handle_bare_path(struct http_request *req)
{
	char location[LOCATION_MAX];
	const char *target = http_target(req);
	size_t path = strcspn(target, "?");
	snprintf(location, sizeof location, "%.*s/%s", (int)path, target, target + path);
	http_add_header(req, "Location", location);
	http_respond(req, 308, NULL, NULL);
}

static const struct http_route host_routes[] = {
	{HTTP_ANY, "/{rest**}", handle_host, INT64_MAX, true},
};

static const struct http_route path_routes[] = {
	{HTTP_ANY, "/p/{id}/{port}", handle_bare_path, 0, false},
	{HTTP_ANY, "/p/{id}/{port}/{rest**}", handle_path, INT64_MAX, true},
};

static const struct route_table host_table = ROUTE_TABLE(host_routes);
static const struct route_table path_table = ROUTE_TABLE(path_routes);
static const struct route_table *const host_tables[] = {&host_table, NULL};
static const struct route_table *const path_tables[] = {&path_table, NULL};

static const struct dialect_area areas[] = {
	{.tables = host_tables,
		.claim = CLAIM_HOST,
		.admit = preview_admit_host,
		.serves_pages = true,
		.encode_error = preview_encode_error},
	{.tables = path_tables,
		.admit = preview_admit_path,
		.serves_pages = true,
		.encode_error = preview_encode_error},
};

const struct dialect preview_dialect = {.name = "preview",
	.areas = areas,
	.area_count = ARRAY_LEN(areas),
	.claims = preview_claims};
