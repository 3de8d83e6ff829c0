#include "api/result.h"

#include <stdlib.h>
#include <string.h>

#include "api/encode.h"
#include "base/log.h"
#include "http/utf8.h"

#define AT_ONCE_MAX (64u * 1024)
#define PIECE       (48u * 1024) /* a multiple of 3: pieces of base64 fit together */

static const char *const keys[EXECUTION_STREAMS] = {"stdout", "stderr"};

struct result_stream {
	struct http_request *req;
	struct buf head; /* the object up to the first output */
	struct output_copy copies[EXECUTION_STREAMS];
	bool base64;
	unsigned current;
	uint64_t position;
};

static void begin_result(struct json_writer *w, const struct execution_view *view, bool base64)
{
	json_begin_object(w);
	encode_execution(w, view);
	json_put_string(w, "encoding", base64 ? "base64" : "utf8");
}

/* ---- short ---- */

static void respond_at_once(struct http_request *req, const struct execution_view *view,
	struct output_copy copies[EXECUTION_STREAMS], bool base64)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	begin_result(&w, view, base64);
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++) {
		autobuf output = {0};
		uint64_t position = 0;
		while (position < copies[i].length &&
			output_copy_read(&copies[i], &position, AT_ONCE_MAX, &output) == 0)
			;
		encode_output(&w, keys[i], &output, base64);
		output_copy_finish(&copies[i]);
	}
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

/* ---- long ---- */

static void stream_free(struct result_stream *s)
{
	buf_finish(&s->head);
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		output_copy_finish(&s->copies[i]);
	free(s);
}

static void stream_stopped(void *arg)
{
	stream_free(arg);
}

/* A string's inside: the writer's value without its quotes. */
static void append_inside(struct buf *out, const struct buf *bytes, bool base64)
{
	autobuf value = {0};
	struct json_writer w = {.out = &value};
	if (base64)
		json_base64(&w, bytes->data, bytes->len);
	else
		json_string_n(&w, bytes->data, bytes->len);
	if (!value.failed && value.len >= 2)
		buf_append(out, value.data + 1, value.len - 2);
}

static void append_key(struct buf *out, const char *key)
{
	buf_append_str(out, ",\"");
	buf_append_str(out, key);
	buf_append_str(out, "\":\"");
}

/* The next piece of the current output; text is not cut inside a character. */
static int append_piece(struct result_stream *s, struct buf *out)
{
	autobuf piece = {0};
	const struct output_copy *c = &s->copies[s->current];
	if (s->position == 0)
		append_key(out, keys[s->current]);
	int r = output_copy_read(c, &s->position, PIECE, &piece);
	if (r < 0)
		return r;
	if (!s->base64 && s->position < c->length) {
		size_t tail = utf8_incomplete_tail(piece.data, piece.len);
		piece.len -= tail;
		s->position -= tail;
	}
	append_inside(out, &piece, s->base64);
	if (s->position < c->length)
		return 0;
	buf_append_char(out, '"');
	s->current++;
	s->position = 0;
	return 0;
}

static void stream_proceed(void *arg)
{
	struct result_stream *s = arg;
	struct http_request *req = s->req;
	struct buf out = s->head;
	s->head = (struct buf){0};
	if (append_piece(s, &out) < 0) {
		log_error("cannot read spooled output");
		buf_finish(&out);
		stream_free(s);
		http_stream_abort(req);
		return;
	}
	bool last = s->current == EXECUTION_STREAMS;
	if (last) {
		buf_append_char(&out, '}');
		stream_free(s);
	}
	http_stream_write(req, &out);
	if (last)
		http_stream_end(req);
}

static void respond_in_pieces(struct http_request *req, const struct execution_view *view,
	struct output_copy copies[EXECUTION_STREAMS], bool base64)
{
	struct result_stream *s = calloc(1, sizeof *s);
	if (!s)
		abort();
	struct json_writer w = {.out = &s->head};
	begin_result(&w, view, base64);
	s->req = req;
	s->base64 = base64;
	memcpy(s->copies, copies, sizeof s->copies);
	const struct http_generator generator = {stream_proceed, stream_stopped, s};
	http_stream_begin(req, 200, "application/json", &generator);
}

void respond_result(struct http_request *req, const struct execution_view *view,
	struct output_copy copies[EXECUTION_STREAMS], bool base64)
{
	if (copies[0].length + copies[1].length <= AT_ONCE_MAX)
		respond_at_once(req, view, copies, base64);
	else
		respond_in_pieces(req, view, copies, base64);
}
