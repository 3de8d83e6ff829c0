/*
 * GET /agentuity/stream/TOKEN.N: what an execution writes, from byte 0 to its end, now or whenever
 * it is asked for. The address is a capability: clients fetch it without a key, for as long as the
 * key is good that the address was given to. A reader holds the
 * process back when it reads slowly, and counts as somebody who waits for the execution.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialect/agentuity/routes.h"
#include "op/exec.h"

#define TOKEN_KIND "agentuity-stream"
#define PIECE      (256u * 1024)

static void put_stream_url(struct json_writer *w, const char *key, const struct http_request *req,
	const char *execution, unsigned stream)
{
	char token[AUTH_TOKEN_SIZE];
	autobuf url = {0};
	auth_make_token(server_of(req)->auth, auth_mark(req), TOKEN_KIND, execution, token);
	agentuity_append_base(&url, req);
	buf_append_str(&url, "/stream/");
	buf_append_str(&url, token);
	buf_append_str(&url, stream == 0 ? ".0" : ".1");
	buf_append_char(&url, '\0');
	if (!url.failed)
		json_put_string(w, key, url.data);
}

void agentuity_put_stream_urls(struct json_writer *w, const struct http_request *req,
	const char *execution, const bool ignores[2])
{
	if (!ignores || !ignores[0])
		put_stream_url(w, "stdoutStreamUrl", req, execution, 0);
	if (!ignores || !ignores[1])
		put_stream_url(w, "stderrStreamUrl", req, execution, 1);
}

/* ---- reading ---- */

static int put_bytes(struct answer *a, const struct op_event *event, struct error *e)
{
	(void)e;
	if (event->kind == OP_OUTPUT)
		answer_put_bytes(a, event->output.bytes);
	return 0;
}

static enum answer_failure fail_stream(
	struct answer *a, struct error *e, const struct op_event *event)
{
	(void)a;
	(void)event;
	if (e->code == ERROR_NOT_FOUND)
		error_set(e, ERROR_NOT_FOUND, "there is no such stream");
	return ANSWER_ERROR;
}

static void streams_add_headers(struct answer *a)
{
	http_add_header(a->req, "Cache-Control", "no-store");
	http_add_header(a->req, "X-Content-Type-Options", "nosniff");
}

static const struct answer_form stream_form = {.type = "application/octet-stream",
	.pace = ANSWER_LIVE,
	.put = put_bytes,
	.fail = fail_stream,
	.head = streams_add_headers};

/* ---- the route ---- */

static void handle_stream(struct http_request *req)
{
	char token[AUTH_TOKEN_SIZE], id[ID_SIZE] = "", mark[AUTH_MARK_SIZE];
	const struct auth *auth = server_of(req)->auth;
	const char *text = http_param(req, "stream");
	size_t len = strcspn(text, ".");
	bool known = len < sizeof token &&
		     (strcmp(text + len, ".0") == 0 || strcmp(text + len, ".1") == 0);
	struct op_attach attach = {.process = {.text = id}, .piece = PIECE};
	struct error e;
	struct answer *a = answer_new(req, &stream_form);
	snprintf(token, sizeof token, "%.*s", (int)(known ? len : 0), text);
	if (!known || !auth_open_token(auth, TOKEN_KIND, token, id, mark)) {
		error_set(&e, ERROR_NOT_FOUND, "there is no such stream");
		answer_refuse(a, &e);
		return;
	}
	if (auth_admit_mark(auth, req, mark, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	/* The last digit of the address says which of the two. */
	attach.ignores[text[len + 1] == '0'] = true;
	a->op = op_attach(&a->call, &attach);
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/stream/{stream}", handle_stream, 0},
};

const struct route_table agentuity_stream_table = ROUTE_TABLE(routes);
