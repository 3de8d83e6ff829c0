/*
 * A WebSocket's client that sends arbitrary bytes, in pieces, to a user who pauses, answers and
 * closes as it pleases. The connection is played here: it checks that what it is asked for makes
 * sense, and that the user is told of the end exactly once.
 *
 * The first byte says how long the pieces are, the second what the user does at each message.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "http/websocket.c"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define MESSAGE_MAX 300

static struct {
	struct http_body_sink sink;
	struct http_generator generator;
	bool paused, writing, over;
	size_t unread;
	struct websocket *ws;
	unsigned choices; /* as bits, one for each message in turn */
	unsigned messages;
	bool user_knows; /* that it is over */
} game;

int http_accept_websocket(struct http_request *req, const char *const *protocols,
	const char **protocol, struct error *e)
{
	(void)req, (void)protocols, (void)e;
	*protocol = NULL;
	return 0;
}

void http_respond_error(struct http_request *req, const struct error *e)
{
	(void)req, (void)e;
	abort();
}

void http_upgrade(struct http_request *req, const char *protocol, const struct http_body_sink *sink,
	const struct http_generator *generator)
{
	(void)req, (void)protocol;
	game.sink = *sink;
	game.generator = *generator;
}

void http_body_pause(struct http_request *req)
{
	(void)req;
	game.paused = true;
}

void http_body_resume(struct http_request *req)
{
	(void)req;
	game.paused = false;
}

void http_body_unread(struct http_request *req, size_t n)
{
	(void)req;
	game.unread = n;
}

void http_stream_write(struct http_request *req, struct buf *data)
{
	(void)req;
	assert(!game.writing && !game.over && data->len > 0);
	game.writing = true;
	buf_finish(data);
	*data = (struct buf){0};
}

void http_stream_end(struct http_request *req)
{
	(void)req;
	assert(!game.over);
	game.over = true;
}

void http_stream_abort(struct http_request *req)
{
	http_stream_end(req);
}

static void take_message(void *arg, enum websocket_kind kind, const char *data, size_t len)
{
	(void)arg;
	assert(!game.user_knows && len <= MESSAGE_MAX);
	switch (game.choices >> game.messages++ % 4 * 2 & 3) {
	case 0:
		websocket_send(game.ws, kind, data, len);
		break;
	case 1:
		websocket_pause(game.ws);
		break;
	case 2:
		game.user_knows = true;
		websocket_close(game.ws, WEBSOCKET_NORMAL, "enough");
		break;
	default:
		break;
	}
}

static void note_closed(void *arg, unsigned code, const char *reason)
{
	(void)arg;
	assert(!game.user_knows && code >= 1000 && code < 5000 &&
		strlen(reason) <= WEBSOCKET_REASON_MAX);
	game.user_knows = true;
}

/* The socket takes what was written, and the user goes on reading. */
static void turn(void)
{
	if (game.writing || game.messages == 0) {
		game.writing = false;
		game.generator.proceed(game.generator.arg);
	}
	if (!game.over && !game.user_knows)
		websocket_resume(game.ws);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const struct websocket_events events = {
		take_message, NULL, note_closed, MESSAGE_MAX, NULL};
	if (size < 3)
		return 0;
	uv_loop_t loop;
	struct http_server server = {.loop = &loop, .limits.websocket_ping_ms = 1000};
	struct http_connection connection = {.server = &server};
	struct http_request *req = &connection.request;
	req->connection = &connection;
	uv_loop_init(&loop);
	memset(&game, 0, sizeof game);
	game.choices = input[1];
	if (http_upgrade_websocket(req, &events, NULL, &game.ws) < 0)
		abort();
	size_t piece = 1 + input[0], idle = 0;
	for (size_t at = 2; at < size && !game.over && idle < 8;) {
		size_t len = size - at < piece ? size - at : piece;
		game.unread = 0;
		if (!game.paused) {
			game.sink.data(game.sink.arg, (const char *)input + at, len);
			assert(game.unread <= len);
			at += len - game.unread;
		}
		idle = game.paused || game.unread == len ? idle + 1 : 0;
		if (!game.over)
			turn();
	}
	if (!game.over)
		game.generator.stop(game.generator.arg);
	assert(game.user_knows);
	uv_run(&loop, UV_RUN_DEFAULT);
	if (uv_loop_close(&loop) != 0)
		abort();
	return 0;
}
