/*
 * GET /agentuity/stream/TOKEN.N: what an execution writes, from byte 0 to its end, now or whenever
 * it is asked for. The address is a capability: clients fetch it without a key. A reader holds the
 * process back when it reads slowly, and counts as somebody who waits for the execution.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialect/agentuity/routes.h"
#include "handler/waiting.h"

#define TOKEN_KIND "agentuity-stream"
#define PIECE      (256u * 1024)

void agentuity_put_stream_url(struct json_writer *w, const char *key,
	const struct http_request *req, const char *execution, unsigned stream)
{
	char token[AUTH_TOKEN_SIZE];
	autobuf url = {0};
	auth_make_token(agentuity_of(req)->auth, TOKEN_KIND, execution, token);
	agentuity_append_base(&url, req);
	buf_append_str(&url, "/stream/");
	buf_append_str(&url, token);
	buf_append_str(&url, stream == 0 ? ".0" : ".1");
	buf_append_char(&url, '\0');
	if (!url.failed)
		json_put_string(w, key, url.data);
}

void agentuity_put_stream_urls(
	struct json_writer *w, const struct http_request *req, const char *execution)
{
	agentuity_put_stream_url(w, "stdoutStreamUrl", req, execution, 0);
	agentuity_put_stream_url(w, "stderrStreamUrl", req, execution, 1);
}

/* ---- reading ---- */

struct reading {
	struct http_request *req;
	struct execution *execution;
	struct execution_watcher watcher;
	unsigned stream;
	bool hungry;
};

static void reading_free(struct reading *r)
{
	execution_unwatch(r->execution, &r->watcher);
	free(r);
}

static void pump(struct reading *r)
{
	struct buf data = {0};
	struct http_request *req = r->req;
	if (!r->hungry)
		return;
	bool ended = execution_has_ended(r->execution);
	if (!execution_read(r->execution, &r->watcher, r->stream, PIECE, &data)) {
		buf_finish(&data);
		reading_free(r);
		http_stream_abort(req);
		return;
	}
	if (data.len == 0 && !ended)
		return;
	r->hungry = false;
	if (data.len > 0) {
		http_stream_write(req, &data);
	} else {
		reading_free(r);
		http_stream_end(req);
	}
}

static void proceed(void *arg)
{
	struct reading *r = arg;
	r->hungry = true;
	pump(r);
}

static void stopped(void *arg)
{
	reading_free(arg);
}

static void changed(void *arg)
{
	pump(arg);
}

/* The last digit of the address says which of the two. */
static unsigned path_stream(const struct http_request *req)
{
	const char *text = http_param(req, "stream");
	return text[strlen(text) - 1] == '1';
}

static void begin(struct http_request *req, struct execution *x)
{
	struct reading *r = calloc(1, sizeof *r);
	if (!r)
		abort();
	const struct http_generator generator = {proceed, stopped, r};
	r->req = req;
	r->execution = x;
	r->stream = path_stream(req);
	r->watcher = (struct execution_watcher){.changed = changed, .arg = r, .paced = true};
	r->watcher.ignores[!r->stream] = true;
	execution_watch(x, &r->watcher);
	http_add_header(req, "Cache-Control", "no-store");
	http_add_header(req, "X-Content-Type-Options", "nosniff");
	http_stream_begin(req, 200, "application/octet-stream", &generator);
}

/* ---- the route ---- */

static void respond_missing(struct http_request *req)
{
	struct error e;
	error_set(&e, ERROR_NOT_FOUND, "there is no such stream");
	http_respond_error(req, &e);
}

static void handle_stream(struct http_request *req)
{
	char token[AUTH_TOKEN_SIZE], id[ID_SIZE];
	const char *text = http_param(req, "stream");
	size_t len = strcspn(text, ".");
	bool known = len < sizeof token &&
		     (strcmp(text + len, ".0") == 0 || strcmp(text + len, ".1") == 0);
	snprintf(token, sizeof token, "%.*s", (int)(known ? len : 0), text);
	if (!known || !auth_open_token(agentuity_of(req)->auth, TOKEN_KIND, token, id)) {
		respond_missing(req);
		return;
	}
	const struct wanted_execution query = {.box = agentuity_of(req)->box, .id = id};
	handler_find_execution(req, &query, begin, respond_missing);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/stream/{stream}", handle_stream, 0},
};

const struct agentuity_table agentuity_stream_table = AGENTUITY_TABLE(NULL, routes);
