/* What is said to a process that runs: signals, its terminal's size. */
#include <string.h>

#include "api/decode.h"
#include "api/lookup.h"

static void respond_done(struct http_request *req)
{
	http_respond(req, 204, NULL, NULL);
}

/* ---- signals ---- */

struct signal_body {
	const char *signal;
	bool tree;
};

static const struct json_field signal_fields[] = {
	{"signal", JSON_STRING, offsetof(struct signal_body, signal),
		JSON_REQUIRED | JSON_NOT_EMPTY, 0, 16},
	{"tree", JSON_BOOL, offsetof(struct signal_body, tree), 0, 0, 0},
};

static void send_signal(struct http_request *req, struct execution *x)
{
	struct error e;
	struct signal_body fields = {0};
	if (api_refuse_ended(req, x))
		return;
	cJSON *body = api_body(req);
	if (!body)
		return;
	int r = json_decode(body, signal_fields, ARRAY_LEN(signal_fields), "", &fields, &e);
	int number = r == 0 ? execution_signal_of(fields.signal) : 0;
	if (r == 0 && number == 0)
		r = error_set_field(&e, ERROR_INVALID_FIELD, "signal", "there is no signal '%.16s'",
			fields.signal);
	cJSON_Delete(body);
	if (r < 0) {
		http_respond_error(req, &e);
		return;
	}
	execution_signal(x, number, fields.tree);
	respond_done(req);
}

static void handle_signal(struct http_request *req)
{
	api_find_execution(req, send_signal);
}

/* ---- terminals ---- */

struct size_body {
	int64_t rows, columns;
};

static const struct json_field size_fields[] = {
	{"rows", JSON_INTEGER, offsetof(struct size_body, rows), JSON_REQUIRED, 1, 1000},
	{"columns", JSON_INTEGER, offsetof(struct size_body, columns), JSON_REQUIRED, 1, 1000},
};

static void resize(struct http_request *req, struct execution *x)
{
	struct error e;
	struct size_body size = {0};
	if (api_refuse_ended(req, x))
		return;
	cJSON *body = api_body(req);
	if (!body)
		return;
	int r = json_decode(body, size_fields, ARRAY_LEN(size_fields), "", &size, &e);
	cJSON_Delete(body);
	if (r == 0 && !execution_resize(x, (unsigned)size.rows, (unsigned)size.columns))
		r = error_set(&e, ERROR_INVALID_REQUEST, "the process has no terminal");
	if (r < 0)
		http_respond_error(req, &e);
	else
		respond_done(req);
}

static void handle_resize(struct http_request *req)
{
	api_find_execution(req, resize);
}

static const struct http_route process_control_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/processes/{process}/signal", handle_signal, BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/processes/{process}/resize", handle_resize, BODY_LIMIT},
};

const struct route_table processes_control_table = ROUTE_TABLE(process_control_routes);
