/*
 * Heads of answers. Nothing that a user passes can end a header line early: names and values are
 * checked here, and what does not fit is left out and logged.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "http/connection.h"
#include "http/server.h"

static const char *reason_of(int status);

void http_put_head(struct http_request *req, int status, const char *type)
{
	struct http_connection *c = req->connection;
	struct http_server *s = c->server;
	struct buf *out = &c->out_head;
	char line[64];
	assert(status == 101 || (status >= 200 && status < 600));
	int len = snprintf(line, sizeof line, "HTTP/1.1 %d %s\r\n", status, reason_of(status));
	out->len = 0;
	buf_append(out, line, (size_t)len);
	if (type)
		http_put_field(out, "Content-Type", type);
	http_put_field(out, "X-Request-Id", req->id);
	/* The beginning of the next request is known only after the whole body. */
	if (c->eof || s->closing || c->body_state == HTTP_BODY_COMING)
		req->head.keep_alive = false;
	if (!req->head.keep_alive && status != 101)
		http_put_field(out, "Connection", "close");
	buf_append(out, req->fields.data, req->fields.len);
	out->failed |= req->fields.failed;
	req->status = status;
	s->counters.requests_total++;
	s->counters.responses_by_class[status / 100]++;
}

void http_add_header(struct http_request *req, const char *name, const char *value)
{
	http_put_field(&req->fields, name, value);
}

void http_put_field(struct buf *out, const char *name, const char *value)
{
	const char *p = value;
	while ((unsigned char)*p >= 0x20 && *p != 0x7f)
		p++;
	if (*p || !http_is_token(name, strlen(name))) {
		log_error("header left out", "name", name, "value", value);
		return;
	}
	buf_append_str(out, name);
	buf_append(out, ": ", 2);
	buf_append(out, value, (size_t)(p - value));
	buf_append(out, "\r\n", 2);
}

void http_put_length(struct buf *out, uint64_t length)
{
	char value[24];
	snprintf(value, sizeof value, "%llu", (unsigned long long)length);
	http_put_field(out, "Content-Length", value);
}

bool http_has_no_body(int status)
{
	return status == 204 || status == 304;
}

static const char *reason_of(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {
		{101, "Switching Protocols"},
		{200, "OK"},
		{201, "Created"},
		{202, "Accepted"},
		{204, "No Content"},
		{206, "Partial Content"},
		{303, "See Other"},
		{304, "Not Modified"},
		{308, "Permanent Redirect"},
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{402, "Payment Required"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{408, "Request Timeout"},
		{409, "Conflict"},
		{410, "Gone"},
		{412, "Precondition Failed"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{415, "Unsupported Media Type"},
		{416, "Range Not Satisfiable"},
		{417, "Expectation Failed"},
		{422, "Unprocessable Content"},
		{425, "Too Early"},
		{426, "Upgrade Required"},
		{429, "Too Many Requests"},
		{431, "Request Header Fields Too Large"},
		{500, "Internal Server Error"},
		{501, "Not Implemented"},
		{502, "Bad Gateway"},
		{503, "Service Unavailable"},
		{504, "Gateway Timeout"},
		{505, "HTTP Version Not Supported"},
		{507, "Insufficient Storage"},
	};
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "";
}
