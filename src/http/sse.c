/* Names and ids are single lines. Values with a line end are dropped: they could forge events. */
#include "http/sse.h"

#include <string.h>

#include "http/http.h"

static void sse_put_field(struct buf *out, const char *name, const char *value);

void sse_begin(struct buf *out, const char *name, const char *id)
{
	if (id)
		sse_put_field(out, "id: ", id);
	if (name)
		sse_put_field(out, "event: ", name);
	buf_append_str(out, "data: ");
}

static void sse_put_field(struct buf *out, const char *name, const char *value)
{
	if (strpbrk(value, "\r\n"))
		return;
	buf_append_str(out, name);
	buf_append_str(out, value);
	buf_append_char(out, '\n');
}

void sse_end(struct buf *out)
{
	buf_append_str(out, "\n\n");
}

void sse_keep_alive(struct http_request *req)
{
	http_stream_keepalive(req, SSE_KEEPALIVE, sizeof SSE_KEEPALIVE - 1, SSE_KEEPALIVE_MS);
}
