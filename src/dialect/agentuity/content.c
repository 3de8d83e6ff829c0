/*
 * GET /fs/{id}?path=…: the bytes of a file, as fast as the client takes them. The answer is raw, so
 * its status tells what went wrong.
 */
#include "dialect/agentuity/routes.h"
#include "answer/content.h"

static void agentuity_content_add_headers(struct answer *a)
{
	http_add_header(a->req, "X-Content-Type-Options", "nosniff");
}

static void agentuity_content_handle_read(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/octet-stream",
		.own_size = sizeof(struct content),
		.put = content_put,
		.fail = agentuity_fail_404,
		.head = agentuity_content_add_headers};
	struct error e;
	const char *path = http_query(req, "path");
	struct answer *a = agentuity_answer(req, &form);
	((struct content *)a->own)->range = content_range(NULL);
	if (path && path[0]) {
		content_run(a, NULL, path, NULL);
		return;
	}
	error_set_field(&e, ERROR_MISSING_FIELD, "path", "\"path\" is missing");
	answer_refuse(a, &e);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/{id}", agentuity_content_handle_read, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_content_table = ROUTE_TABLE(routes);
