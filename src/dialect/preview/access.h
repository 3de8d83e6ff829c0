/* What a request to a preview has shown, and what of it must not reach the port. */
#pragma once

#include "http/http.h"
#include "op/port.h"

#define PREVIEW_TOKEN_HEADER   "x-bunker-preview-token"
#define PREVIEW_TOKEN_QUERY    "bunker_token"
#define PREVIEW_COOKIE         "bunker_preview"
#define PREVIEW_TRAFFIC_HEADER "e2b-traffic-access-token"

struct preview_access {
	const char *tenant;     /* whose key it has; NULL: it has none */
	const char *token;      /* that is said to be the port's; NULL: it has none */
	char token_id[ID_SIZE]; /* "": it is not the port's */
	bool in_query;          /* the token came by the query, which is not to be kept in URLs */
	bool holds_traffic_token;
};

/*
 * For an area's admit. A key that is not known counts as none, because it may be meant for whatever
 * listens on the port; one whose scope does not include the method is refused.
 */
int preview_admit_key(struct http_request *req, struct error *e);
/* Finds what admission has left, and tokens. Cookies count in the form with a host only. */
void preview_find_access(struct http_request *req, bool by_host, struct preview_access *out);
/* Returns the target without our token; both are the request's. */
const char *preview_strip_query(struct http_request *req, const char *target);
/* Whether a field of the request goes on; may replace *value. */
bool preview_passes_field(
	struct http_request *req, bool by_host, const char *name, const char **value);
