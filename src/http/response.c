/*
 * Answers whose body is there. One goes out in one system call when the socket takes it: head and
 * body are handed over as they are, without being copied together. Only what the socket does not
 * take at once is queued.
 */
#include <assert.h>

#include "base/log.h"
#include "http/budget.h"
#include "http/connection.h"
#include "json/json.h"
#include "http/server.h"

static bool take_turn(struct http_request *req);

void http_respond(struct http_request *req, int status, const char *type, struct buf *body)
{
	struct http_connection *c = req->connection;
	autobuf content = body ? buf_take(body) : (struct buf){0};
	if (!take_turn(req))
		return;
	struct error e;
	if (!content.failed && http_budget_check_answer(c, content.len, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	if (content.failed) {
		log_error("answer does not fit into memory", "id", req->id);
		buf_finish(&content);
		status = 500;
	}
	http_put_head(req, status, http_has_no_body(status) ? NULL : type);
	if (!http_has_no_body(status))
		http_put_length(&c->out_head, content.len);
	buf_append(&c->out_head, "\r\n", 2);
	bool bodied = content.len > 0 && req->head.method != HTTP_HEAD && !http_has_no_body(status);
	c->out_body = buf_take(&content);
	http_budget_hold_answer(c, c->out_body.len);
	uv_buf_t bufs[] = {
		uv_buf_init(c->out_head.data, (unsigned)c->out_head.len),
		uv_buf_init(c->out_body.data, (unsigned)c->out_body.len),
	};
	http_answer_sent(c,
		c->out_head.failed ? HTTP_BROKEN : http_connection_send(c, bufs, bodied ? 2 : 1));
}

/* Returns whether the client is still there. If not, closes the connection. */
static bool take_turn(struct http_request *req)
{
	struct http_connection *c = req->connection;
	if (c->lost)
		http_connection_close(c);
	if (c->phase == HTTP_PHASE_CLOSED)
		return false;
	assert(c->phase == HTTP_PHASE_HANDLING);
	return true;
}

void http_answer_sent(struct http_connection *c, enum http_sent sent)
{
	if (sent == HTTP_QUEUED) {
		c->phase = HTTP_PHASE_FLUSHING;
		/* Discards the rest of the body from here on. */
		if (c->body_state == HTTP_BODY_COMING)
			http_wake(c);
	} else if (sent == HTTP_SENT) {
		http_connection_answered(c);
	} else {
		http_connection_close(c);
	}
}

void http_respond_error(struct http_request *req, const struct error *e)
{
	assert(e);
	const struct http_mount *mount = req->mount;
	struct http_error_answer answer = {error_http_status(e->code), "application/json", {0}};
	bool internal = answer.status == 500;
	if (internal)
		log_error("request failed", "id", req->id, "code", error_name(e->code), "message",
			e->message);
	if (mount && mount->encode_error) {
		mount->encode_error(req, e, &answer);
	} else {
		struct json_writer w = {.out = &answer.body};
		json_begin_object(&w);
		http_put_error(&w, e, internal ? req->id : NULL);
		json_end_object(&w);
	}
	http_respond(req, answer.status, answer.type, &answer.body);
}

void http_put_error(struct json_writer *w, const struct error *e, const char *request_id)
{
	json_key(w, "error");
	json_begin_object(w);
	json_put_string(w, "code", error_name(e->code));
	json_put_string(w, "message", e->message);
	if (e->field[0])
		json_put_string(w, "field", e->field);
	if (request_id)
		json_put_string(w, "requestId", request_id);
	json_end_object(w);
}
