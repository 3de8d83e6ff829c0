/*
 * A dialect is one API that the server speaks: the native one, or that of a foreign cloud. It is
 * described by one const struct, which the server has in a list; nothing else in the server knows
 * it. A dialect is made of areas: the tables of routes that share who may use them and how their
 * errors are put.
 */
#pragma once

#include <uv.h>

#include "answer/destination.h"
#include "base/cleanup.h"
#include "http/auth.h"
#include "http/http.h"

struct box;
struct ops;
struct own_url_config;

/* The kind of the token that opens all ports of a sandbox whose previews are for `token`. */
#define TRAFFIC_TOKEN "traffic"

/* Shared by all dialects: one for the process. */
struct server {
	struct box *box;
	struct ops *ops;
	struct auth *auth;
	uv_loop_t *loop;
	struct http_server *http;   /* for its counters; NULL until it is open */
	const char *domain;         /* as configured */
	const char *sandbox_domain; /* the same, with the port that clients have to name, if any */
	const struct own_url_config *own_urls;
	bool context_tokens; /* contexts of code need the sandbox's token in every API */
};

/* The routes of one file, at its end. */
struct route_table {
	const struct http_route *routes;
	size_t count;
};

#define ROUTE_TABLE(rows)                                                                          \
	{                                                                                          \
		rows, ARRAY_LEN(rows)                                                              \
	}

/* Which pages may call an area from a browser (CORS). */
enum dialect_origin {
	DIALECT_OWN_ORIGIN,
	DIALECT_KEYED_ORIGIN, /* any, unless keys are off: then every page could do what it likes */
	DIALECT_ANY_ORIGIN    /* any: a page must know a token in any case */
};

struct dialect_area {
	const char *const *prefixes;             /* each has all tables; NULL: the root alone */
	const struct route_table *const *tables; /* NULL ends */
	unsigned claim; /* a bit of the dialect's `claims`; 0: the path alone decides */
	int (*admit)(struct http_request *req, struct error *e); /* NULL: open to everyone */
	void (*encode_error)(
		struct http_request *req, const struct error *e, struct http_error_answer *answer);
	enum dialect_origin origin;
	bool serves_pages; /* of sandboxes: without keys, too, they may come from anywhere */
};

struct json_alias_table;

struct dialect {
	const char *name; /* in audit and traces */
	const struct dialect_area *areas;
	size_t area_count;
	const struct json_alias_table *const *aliases; /* all it has, which NULL ends; or NULL */
	unsigned (*claims)(const struct http_request *req); /* as in struct http_mount; or NULL */
	const struct destination_headers
		*destination;  /* by which clients name a sandbox; or NULL */
	const unsigned *ports; /* of each sandbox, which it answers for itself; 0 ends; or NULL */
	size_t own_size;       /* of the dialect's own state, which is zeroed before `start` */
	/* Called before the port is open. NULL: there is nothing to do. */
	void (*start)(void *own, struct server *server);
	/* From here on clients go away because the server stops. NULL: nothing to do. */
	void (*stop)(void *own);
};

/* A dialect as this server serves it: what http_ctx returns for its requests. */
struct service {
	struct server *server;
	const struct dialect *dialect;
	void *own;
};

void service_start(struct service *s, struct server *server, const struct dialect *dialect);
void service_stop(struct service *s);
void service_free(struct service *s);
/* Fills `out`, if it is not NULL, and returns how many mounts there are. */
size_t service_mounts(struct service *s, struct http_mount *out);

static inline const struct service *service_of(const struct http_request *req)
{
	return http_ctx(req);
}

static inline struct server *server_of(const struct http_request *req)
{
	return service_of(req)->server;
}

/*
 * Returns the tenant of the request's key; NULL in areas that admit by something else, such as a
 * token.
 */
static inline const char *tenant_of(const struct http_request *req)
{
	return auth_tenant(req);
}

/* An area's admit: requires a key. */
int dialect_admit_key(struct http_request *req, struct error *e);
