/*
 * A WebSocket over an upgraded connection. wslay takes frames apart and puts them together; this
 * file gives it bytes, collects messages and decides about the end.
 *
 * Incoming bytes are taken where the socket left them. Messages are collected here and not by
 * wslay, which keeps each fragment by itself, so that a message of one-byte fragments would cost a
 * hundred times its size. Outgoing messages are framed at once into one buffer, in order; it goes
 * to the socket when the previous one has been taken, and beyond WEBSOCKET_QUEUE_MAX nothing is
 * added.
 *
 * Somebody who pings without reading the pongs is not read from until he does. Every ping_ms a ping
 * goes out; after two intervals without a byte from the client it counts as gone.
 *
 * The end: `told` says that the user has closed it, or knows that it is closed. What is queued goes
 * out, then the close frame; then we wait CLOSE_MS for the client's, unless it has come or the
 * client broke the rules, and end the stream.
 */
#include "http/websocket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <wslay/wslay.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "http/budget.h"
#include "http/connection.h"
#include "http/handshake.h"
#include "http/server.h"

#define CLOSE_MS     5000
#define PONGS_MAX    128
#define MESSAGE_KEPT 65536 /* a buffer that has grown beyond this is not kept */
#define CONTROL_MAX  125   /* of a control frame's payload, by the standard */
#define SILENT_MAX   2     /* pings without an answer */

struct websocket {
	struct http_request *req;
	const struct websocket_events *events;
	void *arg;
	const char *protocol;
	wslay_event_context_ptr wslay;
	uv_timer_t timer;

	const char *input; /* input being consumed; the rest of it */
	size_t input_len;
	struct buf message; /* the part of the message that has arrived */
	bool in_data_frame; /* control frames may come in the middle of a message */
	unsigned failed;    /* the close code for the client's protocol error; 0: none */
	char reason[WEBSOCKET_REASON_MAX + 1];

	struct buf out;
	size_t in_flight; /* bytes that the connection has and the kernel has not */
	bool can_write;
	bool sent; /* something that `writable` has not been called for */

	bool paused;     /* by the user */
	unsigned pongs;  /* that wait in `out` */
	unsigned silent; /* intervals without a byte from the client */
	bool told;
};

static int open_wslay(struct websocket *ws);
static void on_data(void *arg, const char *data, size_t len);
static void on_end(void *arg);
static void on_proceed(void *arg);
static void on_stop(void *arg);
static void websocket_on_timer(uv_timer_t *timer);
static void on_timer_closed(uv_handle_t *handle);
static ssize_t websocket_give_bytes(
	wslay_event_context_ptr ctx, uint8_t *out, size_t len, int flags, void *arg);
static ssize_t websocket_take_bytes(
	wslay_event_context_ptr ctx, const uint8_t *data, size_t len, int flags, void *arg);
static void frame_begins(wslay_event_context_ptr ctx,
	const struct wslay_event_on_frame_recv_start_arg *frame, void *arg);
static void frame_goes_on(wslay_event_context_ptr ctx,
	const struct wslay_event_on_frame_recv_chunk_arg *chunk, void *arg);
static void message_ends(
	wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *message, void *arg);
static void websocket_deliver(struct websocket *ws, enum websocket_kind kind);
static void websocket_fail(struct websocket *ws, unsigned code);
static int websocket_queue(struct websocket *ws, uint8_t opcode, const void *data, size_t len);
static void websocket_flush(struct websocket *ws);
static void websocket_count(struct websocket *ws);
static void websocket_update_reading(struct websocket *ws);
static bool websocket_settle(struct websocket *ws);
static void websocket_tell(struct websocket *ws, unsigned code);
static void websocket_leave(struct websocket *ws);
static void websocket_destroy(struct websocket *ws);

int http_upgrade_websocket(struct http_request *req, const struct websocket_events *events,
	void *arg, struct websocket **ret)
{
	struct error e;
	const char *protocol;
	struct websocket *ws = NULL;
	int r = http_accept_websocket(req, events->protocols, &protocol, &e);
	if (r == 0) {
		ws = calloc(1, sizeof *ws);
		r = ws ? open_wslay(ws) : -ENOMEM;
		if (r < 0)
			error_set(&e, ERROR_RESOURCE_EXHAUSTED, "out of memory");
	}
	if (r < 0 || !ws) {
		free(ws);
		http_respond_error(req, &e);
		return r;
	}
	const struct http_server *server = req->connection->server;
	uint64_t ping_ms = server->limits.websocket_ping_ms;
	ws->req = req;
	ws->events = events;
	ws->arg = arg;
	ws->protocol = protocol;
	wslay_event_config_set_max_recv_msg_length(
		ws->wslay, events->message_max < CONTROL_MAX ? CONTROL_MAX : events->message_max);
	uv_timer_init(server->loop, &ws->timer);
	ws->timer.data = ws;
	if (ping_ms)
		uv_timer_start(&ws->timer, websocket_on_timer, ping_ms, ping_ms);
	http_upgrade(req, "websocket", &(struct http_body_sink){on_data, on_end, NULL, ws},
		&(struct http_generator){on_proceed, on_stop, ws});
	*ret = ws;
	return 0;
}

static int open_wslay(struct websocket *ws)
{
	static const struct wslay_event_callbacks callbacks = {
		.recv_callback = websocket_give_bytes,
		.send_callback = websocket_take_bytes,
		.on_frame_recv_start_callback = frame_begins,
		.on_frame_recv_chunk_callback = frame_goes_on,
		.on_msg_recv_callback = message_ends,
	};
	if (wslay_event_context_server_init(&ws->wslay, &callbacks, ws) != 0)
		return -ENOMEM;
	wslay_event_config_set_no_buffering(ws->wslay, 1);
	return 0;
}

const char *websocket_protocol(const struct websocket *ws)
{
	return ws->protocol;
}

/* ---- bytes in ---- */

static void on_data(void *arg, const char *data, size_t len)
{
	struct websocket *ws = arg;
	ws->silent = 0;
	ws->input = data;
	ws->input_len = len;
	if (wslay_event_recv(ws->wslay) != 0 && !ws->failed)
		ws->failed = WEBSOCKET_PROTOCOL_ERROR;
	/* wslay has queued its answers to pings and closes. */
	wslay_event_send(ws->wslay);
	websocket_flush(ws);
	if (wslay_event_get_read_enabled(ws->wslay))
		http_body_unread(ws->req, ws->input_len);
	ws->input_len = 0;
	websocket_update_reading(ws);
	websocket_settle(ws);
}

static ssize_t websocket_give_bytes(
	wslay_event_context_ptr ctx, uint8_t *out, size_t len, int flags, void *arg)
{
	(void)flags;
	struct websocket *ws = arg;
	size_t n = len < ws->input_len ? len : ws->input_len;
	if (n == 0 || ws->paused) {
		wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	memcpy(out, ws->input, n);
	ws->input += n;
	ws->input_len -= n;
	return (ssize_t)n;
}

static void frame_begins(wslay_event_context_ptr ctx,
	const struct wslay_event_on_frame_recv_start_arg *frame, void *arg)
{
	(void)ctx;
	struct websocket *ws = arg;
	ws->in_data_frame = !wslay_is_ctrl_frame(frame->opcode);
	if (ws->in_data_frame && frame->payload_length > ws->events->message_max - ws->message.len)
		websocket_fail(ws, WEBSOCKET_TOO_BIG);
}

static void frame_goes_on(wslay_event_context_ptr ctx,
	const struct wslay_event_on_frame_recv_chunk_arg *chunk, void *arg)
{
	(void)ctx;
	struct websocket *ws = arg;
	if (!ws->in_data_frame || ws->failed || ws->told)
		return;
	buf_append(&ws->message, chunk->data, chunk->data_length);
	websocket_count(ws);
	if (ws->message.failed)
		websocket_fail(ws, WEBSOCKET_INTERNAL);
	else if (ws->message.len > MESSAGE_KEPT && !http_budget_is_kept(ws->req->connection))
		websocket_fail(ws, WEBSOCKET_TRY_LATER);
}

static void message_ends(
	wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *message, void *arg)
{
	(void)ctx;
	struct websocket *ws = arg;
	switch (message->opcode) {
	case WSLAY_TEXT_FRAME:
		websocket_deliver(ws, WEBSOCKET_TEXT);
		break;
	case WSLAY_BINARY_FRAME:
		websocket_deliver(ws, WEBSOCKET_BINARY);
		break;
	case WSLAY_PING:
		ws->pongs++;
		break;
	case WSLAY_CONNECTION_CLOSE:
		/* The reason follows the code in the first two bytes. */
		if (message->msg_length > 2)
			memcpy(ws->reason, message->msg + 2, message->msg_length - 2);
		break;
	default:
		break;
	}
}

static void websocket_deliver(struct websocket *ws, enum websocket_kind kind)
{
	struct buf message = ws->message;
	ws->message = (struct buf){0};
	if (!ws->failed && !ws->told)
		ws->events->message(ws->arg, kind, message.len ? message.data : "", message.len);
	message.len = 0;
	if (message.cap > MESSAGE_KEPT)
		buf_finish(&message);
	ws->message = message;
	websocket_count(ws);
}

static void websocket_fail(struct websocket *ws, unsigned code)
{
	ws->failed = code;
	wslay_event_shutdown_read(ws->wslay);
	wslay_event_queue_close(ws->wslay, (uint16_t)code, NULL, 0);
}

/* The client has closed its side: without a close frame that is no end of a WebSocket. */
static void on_end(void *arg)
{
	struct websocket *ws = arg;
	websocket_tell(ws, WEBSOCKET_ABNORMAL);
	http_stream_abort(ws->req);
	websocket_destroy(ws);
}

void websocket_pause(struct websocket *ws)
{
	ws->paused = true;
	websocket_update_reading(ws);
}

void websocket_resume(struct websocket *ws)
{
	ws->paused = false;
	websocket_update_reading(ws);
}

static void websocket_update_reading(struct websocket *ws)
{
	if (ws->paused || ws->pongs > PONGS_MAX)
		http_body_pause(ws->req);
	else
		http_body_resume(ws->req);
}

/* ---- bytes out ---- */

int websocket_send(struct websocket *ws, enum websocket_kind kind, const void *data, size_t len)
{
	if (websocket_queued(ws) >= WEBSOCKET_QUEUE_MAX)
		return -EAGAIN;
	ws->sent = true;
	return websocket_queue(
		ws, kind == WEBSOCKET_TEXT ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME, data, len);
}

static int websocket_queue(struct websocket *ws, uint8_t opcode, const void *data, size_t len)
{
	struct wslay_event_msg message = {opcode, data, len};
	/* After the client's close frame messages are dropped; `closed` is called soon. */
	if (wslay_event_queue_msg(ws->wslay, &message) == WSLAY_ERR_NOMEM)
		return -ENOMEM;
	wslay_event_send(ws->wslay);
	websocket_flush(ws);
	return 0;
}

static ssize_t websocket_take_bytes(
	wslay_event_context_ptr ctx, const uint8_t *data, size_t len, int flags, void *arg)
{
	(void)ctx;
	(void)flags;
	struct websocket *ws = arg;
	buf_append(&ws->out, data, len);
	websocket_count(ws);
	return (ssize_t)len;
}

/* Counts queued bytes; the connection counts those in flight itself. */
static void websocket_count(struct websocket *ws)
{
	http_budget_hold_queue(ws->req->connection, ws->out.len + ws->message.len);
}

bool websocket_is_full(const struct websocket *ws, size_t max)
{
	size_t queued = websocket_queued(ws);
	return queued >= max || (queued > 0 && !http_budget_is_kept(ws->req->connection));
}

size_t websocket_queued(const struct websocket *ws)
{
	return ws->out.len + ws->in_flight;
}

/* A buffer that has failed goes the same way: the connection ends by it. */
static void websocket_flush(struct websocket *ws)
{
	if (!ws->can_write || (ws->out.len == 0 && !ws->out.failed))
		return;
	ws->can_write = false;
	ws->in_flight = ws->out.len;
	http_stream_write(ws->req, &ws->out);
	websocket_count(ws);
}

static void on_proceed(void *arg)
{
	struct websocket *ws = arg;
	ws->can_write = true;
	ws->in_flight = 0;
	websocket_flush(ws);
	if (!ws->can_write)
		return;
	if (ws->pongs > 0) {
		ws->pongs = 0;
		websocket_update_reading(ws);
	}
	if (websocket_settle(ws) || !ws->sent)
		return;
	ws->sent = false;
	if (!ws->told && ws->events->writable)
		ws->events->writable(ws->arg);
}

/* ---- the end ---- */

void websocket_close(struct websocket *ws, unsigned code, const char *reason)
{
	size_t len = reason ? strnlen(reason, WEBSOCKET_REASON_MAX) : 0;
	ws->told = true;
	wslay_event_queue_close(ws->wslay, (uint16_t)code, (const uint8_t *)reason, len);
	wslay_event_send(ws->wslay);
	websocket_flush(ws);
	ws->paused = false;
	websocket_update_reading(ws);
	uv_timer_start(&ws->timer, websocket_on_timer, CLOSE_MS, 0);
}

/* Reports a close to the user. Returns whether the socket has ended. Only from the loop. */
static bool websocket_settle(struct websocket *ws)
{
	wslay_event_context_ptr wslay = ws->wslay;
	bool received = wslay_event_get_close_received(wslay);
	bool broken = !wslay_event_get_read_enabled(wslay);
	if (!received && !broken)
		return false;
	if (received)
		websocket_tell(ws, wslay_event_get_status_code_received(wslay));
	else
		websocket_tell(
			ws, ws->failed ? ws->failed : wslay_event_get_status_code_sent(wslay));
	/* Once more, when the socket has taken the close frame. */
	if (!ws->can_write)
		return false;
	websocket_leave(ws);
	return true;
}

static void websocket_tell(struct websocket *ws, unsigned code)
{
	if (ws->told)
		return;
	ws->told = true;
	ws->events->closed(ws->arg, code, ws->reason);
}

static void websocket_leave(struct websocket *ws)
{
	http_stream_end(ws->req);
	websocket_destroy(ws);
}

static void on_stop(void *arg)
{
	struct websocket *ws = arg;
	websocket_tell(ws, WEBSOCKET_ABNORMAL);
	websocket_destroy(ws);
}

static void websocket_on_timer(uv_timer_t *timer)
{
	struct websocket *ws = timer->data;
	if (ws->told) {
		websocket_leave(ws);
		return;
	}
	/* While reading is paused a pong cannot arrive, so do not count missed pings. */
	ws->silent = ws->paused ? 0 : ws->silent + 1;
	if (ws->silent > SILENT_MAX) {
		websocket_tell(ws, WEBSOCKET_ABNORMAL);
		http_stream_abort(ws->req);
		websocket_destroy(ws);
	} else {
		websocket_queue(ws, WSLAY_PING, NULL, 0);
	}
}

static void websocket_destroy(struct websocket *ws)
{
	wslay_event_context_free(ws->wslay);
	buf_finish(&ws->message);
	buf_finish(&ws->out);
	uv_close((uv_handle_t *)&ws->timer, on_timer_closed);
}

static void on_timer_closed(uv_handle_t *handle)
{
	free(handle->data);
}
