#include "dialect/e2b/connect.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

#define ENVELOPE_SIZE       5
#define FLAG_COMPRESSED     0x01
#define FLAG_END            0x02
#define KEEPALIVE_DEFAULT_S 90
#define KEEPALIVE_MAX_S     3600
#define TIMEOUT_DIGITS_MAX  10

static const struct {
	const char *name;
	int http;
} codes[] = {
	[CONNECT_CANCELED] = {"canceled", 499},
	[CONNECT_UNKNOWN] = {"unknown", 500},
	[CONNECT_INVALID_ARGUMENT] = {"invalid_argument", 400},
	[CONNECT_DEADLINE_EXCEEDED] = {"deadline_exceeded", 504},
	[CONNECT_NOT_FOUND] = {"not_found", 404},
	[CONNECT_ALREADY_EXISTS] = {"already_exists", 409},
	[CONNECT_PERMISSION_DENIED] = {"permission_denied", 403},
	[CONNECT_RESOURCE_EXHAUSTED] = {"resource_exhausted", 429},
	[CONNECT_FAILED_PRECONDITION] = {"failed_precondition", 400},
	[CONNECT_ABORTED] = {"aborted", 409},
	[CONNECT_UNIMPLEMENTED] = {"unimplemented", 501},
	[CONNECT_INTERNAL] = {"internal", 500},
	[CONNECT_UNAVAILABLE] = {"unavailable", 503},
	[CONNECT_UNAUTHENTICATED] = {"unauthenticated", 401},
};

const char *connect_code_name(enum connect_code code)
{
	return codes[code].name;
}

int connect_http_status(enum connect_code code)
{
	return codes[code].http;
}

enum connect_code connect_code_of(enum error_code code)
{
	switch (code) {
	case ERROR_NOT_FOUND:
		return CONNECT_NOT_FOUND;
	case ERROR_UNAUTHORIZED:
		return CONNECT_UNAUTHENTICATED;
	case ERROR_NAME_TAKEN:
	case ERROR_ALREADY_EXISTS:
		return CONNECT_ALREADY_EXISTS;
	case ERROR_PERMISSION_DENIED:
	case ERROR_READ_ONLY:
		return CONNECT_PERMISSION_DENIED;
	case ERROR_QUOTA_EXCEEDED:
	case ERROR_RESOURCE_EXHAUSTED:
	case ERROR_NO_SPACE:
		return CONNECT_RESOURCE_EXHAUSTED;
	case ERROR_NOT_RUNNING:
	case ERROR_PAUSED:
	case ERROR_UNAVAILABLE:
		return CONNECT_UNAVAILABLE;
	case ERROR_NOT_IMPLEMENTED:
	case ERROR_NOT_SUPPORTED:
		return CONNECT_UNIMPLEMENTED;
	case ERROR_REQUEST_TIMEOUT:
		return CONNECT_DEADLINE_EXCEEDED;
	case ERROR_INTERNAL:
	case ERROR_BOOT_FAILED:
		return CONNECT_INTERNAL;
	default:
		return CONNECT_INVALID_ARGUMENT;
	}
}

static void put_error(struct json_writer *w, const struct error *e)
{
	json_begin_object(w);
	json_put_string(w, "code", connect_code_name(connect_code_of(e->code)));
	json_put_string(w, "message", e->message);
	json_end_object(w);
}

static bool has_type(const struct http_request *req, const char *wanted)
{
	const char *type = http_header(req, "content-type");
	size_t len = strlen(wanted);
	return type && strncasecmp(type, wanted, len) == 0 &&
	       (type[len] == '\0' || type[len] == ';' || type[len] == ' ');
}

static int parse_message(const char *text, size_t len, cJSON **ret, struct error *e)
{
	/* A message without fields may be sent as nothing at all. */
	int r = len ? json_parse(text, len, ret, e) : json_parse("{}", 2, ret, e);
	if (r < 0 || cJSON_IsObject(*ret))
		return r;
	cJSON_Delete(take_ptr(*ret));
	return error_set(e, ERROR_INVALID_JSON, "the message must be a JSON object");
}

/* ---- unary ---- */

cJSON *connect_request(struct http_request *req)
{
	struct error e;
	size_t len;
	cJSON *message = NULL;
	const char *encoding = http_header(req, "content-encoding");
	const char *text = http_body(req, &len);
	if (!has_type(req, "application/json"))
		error_set(&e, ERROR_UNSUPPORTED_MEDIA_TYPE,
			"unary calls are made with 'Content-Type: application/json'");
	else if (encoding && strcasecmp(encoding, "identity") != 0)
		error_set(
			&e, ERROR_UNSUPPORTED_MEDIA_TYPE, "compressed messages are not supported");
	else
		parse_message(text, len, &message, &e);
	if (!message)
		http_respond_error(req, &e);
	return message;
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
	put_error(&w, e);
}

/* ---- envelopes ---- */

static void put_length(char *at, size_t len)
{
	for (int i = 0; i < 4; i++)
		at[i] = (char)(len >> (24 - 8 * i) & 0xff);
}

size_t connect_begin_message(struct buf *out)
{
	static const char envelope[ENVELOPE_SIZE];
	size_t begin = out->len;
	buf_append(out, envelope, sizeof envelope);
	return begin;
}

void connect_end_message(struct buf *out, size_t begin)
{
	if (!out->failed)
		put_length(out->data + begin + 1, out->len - begin - ENVELOPE_SIZE);
}

void connect_put_end(struct buf *out, const struct error *e)
{
	size_t begin = connect_begin_message(out);
	struct json_writer w = {.out = out};
	json_begin_object(&w);
	if (e) {
		json_key(&w, "error");
		put_error(&w, e);
	}
	json_end_object(&w);
	connect_end_message(out, begin);
	if (!out->failed)
		out->data[begin] = FLAG_END;
}

int connect_take_message(struct buf *in, cJSON **ret, struct error *e)
{
	const unsigned char *bytes = (const unsigned char *)in->data;
	if (in->failed)
		return error_set(e, ERROR_RESOURCE_EXHAUSTED, "out of memory");
	if (in->len < ENVELOPE_SIZE)
		return 0;
	size_t size =
		(size_t)bytes[1] << 24 | (size_t)bytes[2] << 16 | (size_t)bytes[3] << 8 | bytes[4];
	if (bytes[0] & FLAG_COMPRESSED)
		return error_set(e, ERROR_INVALID_REQUEST, "compressed messages are not supported");
	if (bytes[0] != 0)
		return error_set(e, ERROR_INVALID_REQUEST, "the envelope has unknown flags");
	if (size > CONNECT_BODY_LIMIT)
		return error_set(e, ERROR_BODY_TOO_LARGE, "a message is larger than %u bytes",
			CONNECT_BODY_LIMIT);
	if (in->len - ENVELOPE_SIZE < size)
		return 0;
	int r = parse_message(in->data + ENVELOPE_SIZE, size, ret, e);
	buf_consume(in, ENVELOPE_SIZE + size);
	return r < 0 ? r : 1;
}

bool connect_is_stream(const struct http_request *req)
{
	return has_type(req, "application/connect+json");
}

/* Exactly one envelope, of the length it says. */
static int take_only_message(struct buf *in, cJSON **ret, struct error *e)
{
	int r = connect_take_message(in, ret, e);
	if (r < 0 || (r > 0 && in->len == 0))
		return r;
	if (r > 0)
		cJSON_Delete(take_ptr(*ret));
	return error_set(e, ERROR_INVALID_REQUEST,
		"the body must be exactly one envelope, of the length it says");
}

cJSON *connect_stream_request(struct http_request *req)
{
	struct error e;
	size_t len;
	cJSON *message = NULL;
	autobuf in = {0};
	const char *body = http_body(req, &len);
	if (!connect_is_stream(req)) {
		error_set(&e, ERROR_UNSUPPORTED_MEDIA_TYPE,
			"streaming calls are made with 'Content-Type: application/connect+json'");
		http_respond_error(req, &e);
		return NULL;
	}
	buf_append(&in, body, len);
	if (take_only_message(&in, &message, &e) < 0)
		connect_stream_refuse(req, &e);
	return message;
}

void connect_stream_refuse(struct http_request *req, const struct error *e)
{
	struct buf body = {0};
	connect_put_end(&body, e);
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

int64_t connect_timeout_ms(struct http_request *req)
{
	struct error e;
	int64_t ms = 0;
	const char *text = http_header(req, "connect-timeout-ms");
	if (!text || parse_digits(text, TIMEOUT_DIGITS_MAX, &ms))
		return ms;
	error_set(&e, ERROR_INVALID_REQUEST, "Connect-Timeout-Ms must be a number of milliseconds");
	connect_stream_refuse(req, &e);
	return -1;
}

static uint64_t keepalive_ms(const struct http_request *req)
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
static struct http_request *stream_close(struct connect_stream *s)
{
	struct http_request *req = take_ptr(s->req);
	s->source.closed(s->source.arg);
	uv_close((uv_handle_t *)&s->keepalive, handle_closed);
	uv_close((uv_handle_t *)&s->deadline, handle_closed);
	return req;
}

static void send_end(struct connect_stream *s, struct buf *out, const struct error *e)
{
	struct http_request *req = stream_close(s);
	connect_put_end(out, e);
	http_stream_write(req, out);
	http_stream_end(req);
}

static void put_keepalive(struct connect_stream *s, struct buf *out)
{
	size_t begin = connect_begin_message(out);
	buf_append_str(out, s->source.keepalive);
	connect_end_message(out, begin);
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
		http_stream_abort(stream_close(s));
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
	stream_close(arg);
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
	uv_timer_start(&s->keepalive, keepalive_passed, keepalive_ms(req), keepalive_ms(req));
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
