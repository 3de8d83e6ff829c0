#include "answer/dialect.h"
#include "base/mem.h"

#include <stdlib.h>

int dialect_admit_key(struct http_request *req, struct error *e)
{
	return auth_admit(server_of(req)->auth, req, e);
}

static int dialect_guard_name(const struct http_request *req, struct error *e)
{
	return auth_guard_name(server_of(req)->auth, req, e);
}

static int dialect_guard_site(const struct http_request *req, struct error *e)
{
	return auth_guard_site(server_of(req)->auth, req, e);
}

void service_start(struct service *s, struct server *server, const struct dialect *dialect)
{
	*s = (struct service){.server = server, .dialect = dialect};
	if (dialect->own_size > 0)
		s->own = mem_new(dialect->own_size);
	if (dialect->start)
		dialect->start(s->own, server);
}

void service_stop(struct service *s)
{
	if (s->dialect && s->dialect->stop)
		s->dialect->stop(s->own);
}

void service_free(struct service *s)
{
	free(s->own);
}

static bool area_has_any_origin(const struct dialect_area *area, const struct server *server)
{
	return area->origin == DIALECT_ANY_ORIGIN ||
	       (area->origin == DIALECT_KEYED_ORIGIN && !auth_is_disabled(server->auth));
}

/* The area's tables below one prefix, or below none. */
static size_t area_mounts(struct service *s, const struct dialect_area *area, const char *prefix,
	struct http_mount *out)
{
	size_t count = 0;
	for (; area->tables[count]; count++)
		if (out)
			out[count] = (struct http_mount){.routes = area->tables[count]->routes,
				.route_count = area->tables[count]->count,
				.guard = area->serves_pages ? dialect_guard_name
							    : dialect_guard_site,
				.admit = area->admit,
				.ctx = s,
				.prefix = prefix,
				.claims = area->claim ? s->dialect->claims : NULL,
				.claim = area->claim,
				.encode_error = area->encode_error,
				.any_origin = area_has_any_origin(area, s->server)};
	return count;
}

size_t service_mounts(struct service *s, struct http_mount *out)
{
	static const char *const root[] = {"", NULL};
	size_t count = 0;
	for (size_t i = 0; i < s->dialect->area_count; i++) {
		const struct dialect_area *area = &s->dialect->areas[i];
		for (const char *const *p = area->prefixes ? area->prefixes : root; *p; p++)
			count +=
				area_mounts(s, area, (*p)[0] ? *p : NULL, out ? out + count : NULL);
	}
	return count;
}
