/*
 * What E2B's SDK can ask for and this server does not have: answered 501 by name, because a 404
 * would be taken for "there is no such secret".
 */
#include "dialect/e2b/routes.h"

static void handle_secret(struct http_request *req)
{
	struct error e;
	error_set(&e, ERROR_NOT_IMPLEMENTED, "this server does not keep secrets for E2B's SDK yet");
	http_respond_error(req, &e);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/secrets", handle_secret, E2B_BODY_LIMIT},
	{HTTP_GET, "/secrets", handle_secret, 0},
	{HTTP_GET, "/secrets/{id}", handle_secret, 0},
	{HTTP_POST, "/secrets/{id}", handle_secret, E2B_BODY_LIMIT},
	{HTTP_DELETE, "/secrets/{id}", handle_secret, 0},
};

const struct route_table e2b_unsupported_table = ROUTE_TABLE(routes);
