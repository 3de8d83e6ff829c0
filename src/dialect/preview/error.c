#include "dialect/preview/error.h"

#include <string.h>

#include "json/json.h"

/* Beside `message` and `code`, in E2B's words. */
static const char *e2b_message(const struct error *e)
{
	switch (e->code) {
	case ERROR_PORT_CLOSED:
		return "The sandbox is running but port is not open";
	case ERROR_NOT_FOUND:
	case ERROR_PAUSED:
		return "The sandbox was not found";
	default:
		return e->message;
	}
}

static void put_json(struct http_request *req, const struct error *e, int status, struct buf *out)
{
	const struct http_destination *d = http_destination(req);
	struct json_writer w = {.out = out};
	json_begin_object(&w);
	http_put_error(&w, e, NULL);
	json_put_string(&w, "sandboxId", d ? d->name : "");
	json_put_string(&w, "message", e2b_message(e));
	if (e->code == ERROR_PORT_CLOSED && d)
		json_put_int(&w, "port", d->port);
	json_put_int(&w, "code", status);
	json_end_object(&w);
}

/* An error's message has names that clients chose. */
static void put_escaped(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("<>&\"'", *text))
			buf_append_str(out, *text == '<'   ? "&lt;"
					    : *text == '>' ? "&gt;"
					    : *text == '&' ? "&amp;"
							   : "&quot;");
		else
			buf_append_char(out, *text);
	}
}

static void put_page(const struct error *e, struct buf *out)
{
	bool waits = e->code == ERROR_PORT_CLOSED || e->code == ERROR_UNAVAILABLE;
	buf_append_str(out, "<!doctype html><html lang=en><meta charset=utf-8>");
	if (waits)
		buf_append_str(out, "<meta http-equiv=refresh content=2>");
	buf_append_str(out,
		"<meta name=viewport content=\"width=device-width\"><title>Preview</title>"
		"<style>body{font:16px/1.5 system-ui,sans-serif;max-width:34em;"
		"margin:15vh auto;padding:0 1em;color-scheme:light dark}</style><h1>");
	buf_append_str(out, waits ? "Not listening yet" : "No preview");
	buf_append_str(out, "</h1><p>");
	put_escaped(out, e->message);
	buf_append_str(out, ".</p>");
	if (waits)
		buf_append_str(out, "<p>This page asks again every two seconds.</p>");
	buf_append_str(out, "</html>\n");
}

void preview_encode_error(
	struct http_request *req, const struct error *e, struct http_error_answer *answer)
{
	const char *accept = http_header(req, "accept");
	http_add_header(req, "Cache-Control", "no-store");
	if (accept && strstr(accept, "text/html")) {
		answer->type = "text/html; charset=utf-8";
		http_add_header(req, "Content-Security-Policy",
			"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'");
		put_page(e, &answer->body);
	} else {
		put_json(req, e, answer->status, &answer->body);
	}
}
