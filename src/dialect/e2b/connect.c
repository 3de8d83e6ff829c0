#include "dialect/e2b/connect.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

#define KEEPALIVE_DEFAULT_S 90
#define KEEPALIVE_MAX_S     3600
#define TIMEOUT_DIGITS_MAX  10

/* ---- unary ---- */

static int connect_parse(const struct http_request *req, cJSON **ret, struct error *e)
{
	size_t len;
	const char *encoding = http_header(req, "content-encoding");
	const char *text = http_body(req, &len);
	if (!http_has_type(req, "application/json"))
		return error_set(e, ERROR_UNSUPPORTED_MEDIA_TYPE,
			"unary calls are made with 'Content-Type: application/json'");
	if (encoding && strcasecmp(encoding, "identity") != 0)
		return error_set(
			e, ERROR_UNSUPPORTED_MEDIA_TYPE, "compressed messages are not supported");
	return envelope_parse(text, len, ret, e);
}

cJSON *connect_request(struct http_request *req)
{
	struct error e;
	cJSON *message = NULL;
	if (connect_parse(req, &message, &e) < 0)
		http_respond_error(req, &e);
	return message;
}

static void connect_message_free(void *message)
{
	cJSON_Delete(message);
}

const cJSON *connect_message(struct answer *a, struct error *e)
{
	cJSON *message = NULL;
	if (connect_parse(a->req, &message, e) < 0)
		return NULL;
	scratch_own(&a->call.memory, message, connect_message_free);
	return message;
}

int connect_put_empty(struct answer *a, const struct op_event *event, struct error *e)
{
	(void)e;
	if (event->kind == OP_DONE)
		buf_append_str(&a->out, "{}");
	return 0;
}

void connect_respond(struct http_request *req, struct buf *message)
{
	http_respond(req, 200, "application/json", message);
}

void connect_respond_empty(struct http_request *req)
{
	struct buf body = {0};
	buf_append_str(&body, "{}");
	connect_respond(req, &body);
}

void connect_encode_error(const struct error *e, struct http_error_answer *answer)
{
	struct json_writer w = {.out = &answer->body};
	answer->status = connect_http_status(connect_code_of(e->code));
	envelope_put_error(&w, e);
}

/* ---- streaming calls ---- */

bool connect_is_stream(const struct http_request *req)
{
	return http_has_type(req, "application/connect+json");
}

/* Exactly one envelope, of the length it says. */
static int take_only_message(struct buf *in, cJSON **ret, struct error *e)
{
	int r = envelope_take(in, ret, e);
	if (r < 0 || (r > 0 && in->len == 0))
		return r;
	if (r > 0)
		cJSON_Delete(take_ptr(*ret));
	return error_set(e, ERROR_INVALID_REQUEST,
		"the body must be exactly one envelope, of the length it says");
}

static int connect_stream_parse(const struct http_request *req, cJSON **ret, struct error *e)
{
	size_t len;
	autobuf in = {0};
	const char *body = http_body(req, &len);
	if (!connect_is_stream(req))
		return error_set(e, ERROR_UNSUPPORTED_MEDIA_TYPE,
			"streaming calls are made with 'Content-Type: application/connect+json'");
	buf_append(&in, body, len);
	return take_only_message(&in, ret, e);
}

cJSON *connect_stream_request(struct http_request *req)
{
	struct error e;
	cJSON *message = NULL;
	if (connect_stream_parse(req, &message, &e) >= 0)
		return message;
	if (connect_is_stream(req))
		connect_stream_refuse(req, &e);
	else
		http_respond_error(req, &e);
	return NULL;
}

const cJSON *connect_stream_message(struct answer *a, struct error *e)
{
	cJSON *message = NULL;
	if (connect_stream_parse(a->req, &message, e) < 0)
		return NULL;
	scratch_own(&a->call.memory, message, connect_message_free);
	return message;
}

enum answer_failure connect_stream_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	(void)event;
	if (!connect_is_stream(a->req))
		return ANSWER_ERROR;
	envelope_put_end(&a->out, e);
	return ANSWER_PUT;
}

void connect_stream_refuse(struct http_request *req, const struct error *e)
{
	struct buf body = {0};
	envelope_put_end(&body, e);
	http_respond(req, 200, "application/connect+json", &body);
}

/* ---- what the headers ask for ---- */

static bool parse_digits(const char *text, size_t digits_max, int64_t *ret)
{
	size_t len = strlen(text);
	if (len == 0 || len > digits_max || strspn(text, "0123456789") != len)
		return false;
	*ret = strtoll(text, NULL, 10);
	return true;
}

int connect_deadline(const struct http_request *req, int64_t *ms, struct error *e)
{
	const char *text = http_header(req, "connect-timeout-ms");
	*ms = 0;
	if (!text || parse_digits(text, TIMEOUT_DIGITS_MAX, ms))
		return 0;
	return error_set(
		e, ERROR_INVALID_REQUEST, "Connect-Timeout-Ms must be a number of milliseconds");
}

int64_t connect_timeout_ms(struct http_request *req)
{
	struct error e;
	int64_t ms;
	if (connect_deadline(req, &ms, &e) == 0)
		return ms;
	connect_stream_refuse(req, &e);
	return -1;
}

uint64_t connect_keepalive_ms(const struct http_request *req)
{
	int64_t seconds;
	const char *text = http_header(req, "keepalive-ping-interval");
	if (!text || !parse_digits(text, 9, &seconds) || seconds == 0)
		seconds = KEEPALIVE_DEFAULT_S;
	if (seconds > KEEPALIVE_MAX_S)
		seconds = KEEPALIVE_MAX_S;
	return (uint64_t)seconds * 1000;
}

/* ---- streams ---- */

struct connect_stream {
	struct http_request *req; /* NULL once the stream is over */
	struct connect_source source;
	uv_timer_t keepalive, deadline;
	unsigned handles_open;
	bool hungry; /* the client can take more */
	bool keepalive_due;
	bool deadline_passed;
	bool collecting; /* the source is being asked */
	bool woken;      /* ... and has said meanwhile that there is more */
};

static void handle_closed(uv_handle_t *handle)
{
	struct connect_stream *s = handle->data;
	if (--s->handles_open == 0)
		free(s);
}

/* Before the last write: it may find that the client has gone. */
static struct http_request *stream_close(struct connect_stream *s, bool client_left)
{
	struct http_request *req = take_ptr(s->req);
	s->source.closed(s->source.arg, client_left);
	uv_close((uv_handle_t *)&s->keepalive, handle_closed);
	uv_close((uv_handle_t *)&s->deadline, handle_closed);
	return req;
}

static void send_end(struct connect_stream *s, struct buf *out, const struct error *e)
{
	struct http_request *req = stream_close(s, false);
	envelope_put_end(out, e);
	http_stream_write(req, out);
	http_stream_end(req);
}

static void put_keepalive(struct connect_stream *s, struct buf *out)
{
	size_t begin = envelope_begin(out);
	buf_append_str(out, s->source.keepalive);
	envelope_end(out, begin);
}

static enum connect_progress collect(struct connect_stream *s, struct buf *out, struct error *e)
{
	enum connect_progress progress;
	s->collecting = true;
	do {
		s->woken = false;
		progress = s->source.collect(s->source.arg, out, e);
	} while (s->woken && out->len == 0 && progress == CONNECT_MORE);
	s->collecting = false;
	return progress;
}

static void pump(struct connect_stream *s)
{
	struct buf out = {0};
	struct error e = {0};
	if (!s->req || !s->hungry)
		return;
	enum connect_progress progress = collect(s, &out, &e);
	if (progress == CONNECT_MORE && s->deadline_passed) {
		error_set(&e, ERROR_REQUEST_TIMEOUT, "the deadline of the call has passed");
		progress = CONNECT_FAILED;
	}
	if (progress == CONNECT_RESET) {
		buf_finish(&out);
		http_stream_abort(stream_close(s, false));
		return;
	}
	if (progress != CONNECT_MORE) {
		send_end(s, &out, progress == CONNECT_FAILED ? &e : NULL);
		return;
	}
	if (out.len == 0 && s->keepalive_due)
		put_keepalive(s, &out);
	if (out.len == 0)
		return;
	s->keepalive_due = false;
	s->hungry = false;
	uv_timer_again(&s->keepalive);
	http_stream_write(s->req, &out);
}

static void keepalive_passed(uv_timer_t *timer)
{
	struct connect_stream *s = timer->data;
	s->keepalive_due = true;
	pump(s);
}

static void deadline_passed(uv_timer_t *timer)
{
	struct connect_stream *s = timer->data;
	s->deadline_passed = true;
	pump(s);
}

static void stream_proceed(void *arg)
{
	struct connect_stream *s = arg;
	s->hungry = true;
	pump(s);
}

static void stream_stopped(void *arg)
{
	stream_close(arg, true);
}

static void open_timer(struct connect_stream *s, uv_loop_t *loop, uv_timer_t *timer)
{
	uv_timer_init(loop, timer);
	timer->data = s;
	s->handles_open++;
}

struct connect_stream *connect_stream_begin(
	struct http_request *req, uv_loop_t *loop, const struct connect_source *source)
{
	struct connect_stream *s = calloc(1, sizeof *s);
	const struct http_generator generator = {stream_proceed, stream_stopped, s};
	int64_t timeout = 0;
	if (!s)
		abort();
	s->req = req;
	s->source = *source;
	open_timer(s, loop, &s->keepalive);
	open_timer(s, loop, &s->deadline);
	uv_timer_start(&s->keepalive, keepalive_passed, connect_keepalive_ms(req),
		connect_keepalive_ms(req));
	const char *text = http_header(req, "connect-timeout-ms");
	if (text && parse_digits(text, TIMEOUT_DIGITS_MAX, &timeout) && timeout > 0)
		uv_timer_start(&s->deadline, deadline_passed, (uint64_t)timeout, 0);
	http_stream_begin(req, 200, "application/connect+json", &generator);
	return s;
}

void connect_stream_wake(struct connect_stream *s)
{
	if (s->collecting)
		s->woken = true;
	else
		pump(s);
}
