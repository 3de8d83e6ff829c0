/*
 * /v1/sandboxes/{id}/network/destinations: what a sandbox reached, and what was refused. One list
 * as JSON; or, by `Accept`, what there is and then each destination as it changes, until the
 * sandbox has ended.
 */
#include "answer/records.h"
#include "api/routes.h"
#include "api/stream.h"
#include "op/traffic.h"

#define KEEPALIVE_MS 30000

static const struct answer_records destinations = {
	.table = &destination_model, .list = "destinations"};

static int destination_put_change(struct answer *a, const struct op_event *event, struct error *e)
{
	const enum stream_format *format = a->own;
	struct json_writer w = {.out = &a->out};
	(void)e;
	if (event->kind != OP_ROW)
		return 0;
	if (*format == STREAM_SSE)
		buf_append_str(&a->out, "event: destination\ndata: ");
	json_encode_object(&w, &destination_model, event->record, NULL);
	buf_append_str(&a->out, *format == STREAM_SSE ? "\n\n" : "\n");
	return 0;
}

static void destination_stream_head(struct answer *a)
{
	http_add_header(a->req, "Cache-Control", "no-store");
}

static void destination_stream_begin(struct answer *a, enum stream_format format)
{
	static const char comment[] = ": keepalive\n\n", line[] = "{\"type\":\"keepalive\"}\n";
	*(enum stream_format *)a->own = format;
	a->type = stream_content_type(format);
	if (format == STREAM_SSE)
		answer_keep_alive(a, comment, sizeof comment - 1, KEEPALIVE_MS);
	else
		answer_keep_alive(a, line, sizeof line - 1, KEEPALIVE_MS);
}

static void handle_destinations(struct http_request *req)
{
	static const struct answer_form list = {ANSWER_LIST(&destinations)};
	static const struct answer_form stream = {.pace = ANSWER_LIVE,
		.own_size = sizeof(enum stream_format),
		.put = destination_put_change,
		.head = destination_stream_head};
	enum stream_format format = stream_format_of(http_header(req, "accept"));
	struct answer *a = api_answer(req, format == STREAM_NONE ? &list : &stream);
	if (format == STREAM_NONE) {
		a->op = op_destinations(&a->call);
	} else {
		destination_stream_begin(a, format);
		a->op = op_destinations_follow(&a->call);
	}
	answer_run(a);
}

static const struct http_route destination_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/network/destinations", handle_destinations, 0},
};

const struct route_table destination_table = ROUTE_TABLE(destination_routes);
