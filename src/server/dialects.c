#include "server/dialects.h"

#include <stdlib.h>

#include "base/mem.h"
#include "api/api.h"
#include "dialect/agentuity/agentuity.h"
#include "dialect/e2b/e2b.h"
#include "dialect/preview/preview.h"

const struct dialect *const dialects[] = {
	&api_dialect,
	&e2b_dialect,
	&agentuity_dialect,
	&preview_dialect,
	NULL,
};

void services_start(struct services *s, struct server *server)
{
	s->list = mem_new_array(ARRAY_LEN(dialects), sizeof *s->list);
	for (; dialects[s->count]; s->count++) {
		service_start(&s->list[s->count], server, dialects[s->count]);
		s->mount_count += service_mounts(&s->list[s->count], NULL);
	}
	struct http_mount *next = s->mounts = mem_new_array(s->mount_count, sizeof *s->mounts);
	for (size_t i = 0; i < s->count; i++)
		next += service_mounts(&s->list[i], next);
}

static bool port_is_reserved(unsigned port)
{
	for (size_t i = 0; dialects[i]; i++)
		for (const unsigned *own = dialects[i]->ports; own && *own; own++)
			if (*own == port)
				return true;
	return false;
}

void services_address(struct http_request *req)
{
	struct http_destination destination;
	bool found = destination_in_host(req, &destination);
	for (size_t i = 0; dialects[i] && !found; i++)
		found = dialects[i]->destination &&
			destination_in_headers(req, dialects[i]->destination, &destination);
	if (!found)
		return;
	destination.reserved = port_is_reserved(destination.port);
	http_set_destination(req, &destination);
}

void services_stop(struct services *s)
{
	for (size_t i = 0; i < s->count; i++)
		service_stop(&s->list[i]);
}

void services_free(struct services *s)
{
	for (size_t i = 0; i < s->count; i++)
		service_free(&s->list[i]);
	free(s->list);
	free(s->mounts);
}
