/*
 * Bytes to and from one init. What comes is hostile: a frame that does not decode, or comes before
 * HELLO, ends the connection, and with it the sandbox.
 */
#include "box/link/init_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"

/* A START for each execution that may run at once, and their windows of stdin. */
#define SEND_MAX (768u << 20)

#define READY_TIMEOUT_MS 10000

struct init_link {
	uv_pipe_t pipe;
	uv_timer_t patience; /* until init is ready */
	int handles_open;
	uv_write_t write;
	struct init_events events;
	void *arg;
	struct buf received; /* the beginning of a frame that is not complete */
	struct buf queued;   /* to be sent next */
	struct buf flying;   /* being sent by uv_write */
	bool connected, greeted, ready, closed;
	bool held; /* nothing is sent */
};

static void init_link_lost(struct init_link *l, const char *reason)
{
	if (l->closed)
		return;
	log_debug("lost the connection to an init", "reason", reason);
	l->events.lost(l->arg);
}

static void init_link_greet(struct init_link *l, const struct frame_header *h, const char *payload)
{
	struct frame_hello hello;
	if (h->type != FRAME_HELLO || frame_payload(h, payload, &hello, sizeof hello) < 0 ||
		hello.version != FRAME_VERSION) {
		init_link_lost(l, "init speaks another version");
		return;
	}
	l->greeted = true;
}

static void handle_frame(struct init_link *l, const struct frame_header *h, const char *payload)
{
	if (!l->greeted) {
		init_link_greet(l, h, payload);
	} else if (h->type == FRAME_READY && !l->ready) {
		l->ready = true;
		uv_timer_stop(&l->patience);
		l->events.ready(l->arg);
	} else {
		FAULT_POINT();
		l->events.frame(l->arg, h, payload);
	}
}

/* Handles the complete frames in data; returns how many bytes they were, or -EPROTO. */
static int64_t handle_frames(struct init_link *l, const char *data, size_t len)
{
	size_t used = 0;
	while (!l->closed) {
		struct frame_header h;
		int64_t size = frame_decode(data + used, len - used, &h);
		if (size < 0)
			return size;
		if (size == 0)
			break;
		handle_frame(l, &h, data + used + FRAME_HEADER_SIZE);
		used += (size_t)size;
	}
	return (int64_t)used;
}

static void take_bytes(struct init_link *l, const char *data, size_t len)
{
	int64_t used;
	if (l->received.len == 0) {
		used = handle_frames(l, data, len);
		if (used >= 0 && !l->closed)
			buf_append(&l->received, data + used, len - (size_t)used);
	} else {
		buf_append(&l->received, data, len);
		used = handle_frames(l, l->received.data, l->received.len);
		if (used > 0 && !l->closed)
			buf_consume(&l->received, (size_t)used);
	}
	if (l->closed)
		return;
	if (used < 0 || l->received.failed)
		init_link_lost(l, "init sent what is no frame");
	else if (l->received.len == 0)
		buf_finish(&l->received);
}

/* One buffer for all links: frames are handled before the next read. */
static void init_link_give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
	static char shared[256 * 1024];
	(void)handle;
	(void)suggested;
	*out = uv_buf_init(shared, sizeof shared);
}

static void read_done(uv_stream_t *stream, ssize_t n, const uv_buf_t *data)
{
	struct init_link *l = stream->data;
	if (n > 0)
		take_bytes(l, data->base, (size_t)n);
	else if (n < 0)
		init_link_lost(l, uv_strerror((int)n));
}

static void init_link_patience_over(uv_timer_t *timer)
{
	init_link_lost(timer->data, "init does not get ready");
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof address.sun_path)
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return -errno;
	return take_fd(&fd);
}

struct init_link *init_link_new(uv_loop_t *loop, const struct init_events *events, void *arg)
{
	struct init_link *l = mem_new(sizeof *l);
	l->events = *events;
	l->arg = arg;
	uv_pipe_init(loop, &l->pipe, 0);
	uv_timer_init(loop, &l->patience);
	l->pipe.data = l->patience.data = l;
	l->handles_open = 2;
	return l;
}

int init_link_connect(struct init_link *l, const char *path)
{
	int fd = connect_to(path);
	if (fd < 0)
		return fd;
	/* First, before what has been waiting for the connection. */
	autobuf waiting = l->queued;
	l->queued = (struct buf){0};
	frame_append(&l->queued, FRAME_ATTACH, 0, 0, 0, NULL, 0);
	buf_append(&l->queued, waiting.data, waiting.len);
	l->connected = true;
	uv_timer_start(&l->patience, init_link_patience_over, READY_TIMEOUT_MS, 0);
	uv_pipe_open(&l->pipe, fd);
	uv_read_start((uv_stream_t *)&l->pipe, init_link_give_buffer, read_done);
	init_link_flush(l);
	return 0;
}

bool init_link_is_connected(const struct init_link *l)
{
	return l->connected;
}

void init_link_hold(struct init_link *l, bool hold)
{
	if (!l)
		return;
	l->held = hold;
	if (!hold)
		init_link_flush(l);
}

struct buf *init_link_buffer(struct init_link *l)
{
	return &l->queued;
}

void init_link_set_arg(struct init_link *l, void *arg)
{
	l->arg = arg;
}

static void write_done(uv_write_t *write, int status)
{
	struct init_link *l = write->data;
	buf_finish(&l->flying);
	if (l->closed)
		return;
	if (status < 0)
		init_link_lost(l, uv_strerror(status));
	else
		init_link_flush(l);
}

static void flush_failed(uv_timer_t *timer)
{
	init_link_lost(timer->data, "init does not read");
}

/* Callers that flush are in the middle of something, so the loss is told from the loop. */
static void fail_later(struct init_link *l)
{
	buf_finish(&l->queued);
	uv_timer_start(&l->patience, flush_failed, 0, 0);
}

void init_link_flush(struct init_link *l)
{
	if (l->closed || l->flying.len > 0 || l->queued.len == 0)
		return;
	if (l->queued.failed || l->queued.len > SEND_MAX) {
		fail_later(l);
		return;
	}
	if (!l->connected || l->held)
		return;
	FAULT_POINT();
	uv_buf_t data = uv_buf_init(l->queued.data, (unsigned)l->queued.len);
	int n = uv_try_write((uv_stream_t *)&l->pipe, &data, 1);
	if (n > 0)
		buf_consume(&l->queued, (size_t)n);
	if (n == (int)data.len)
		return;
	if (n < 0 && n != UV_EAGAIN) {
		fail_later(l);
		return;
	}
	l->flying = l->queued;
	l->queued = (struct buf){0};
	data = uv_buf_init(l->flying.data, (unsigned)l->flying.len);
	l->write.data = l;
	uv_write(&l->write, (uv_stream_t *)&l->pipe, &data, 1, write_done);
}

static void init_link_free(uv_handle_t *handle)
{
	struct init_link *l = handle->data;
	if (--l->handles_open > 0)
		return;
	buf_finish(&l->received);
	buf_finish(&l->queued);
	buf_finish(&l->flying);
	free(l);
}

void init_link_close(struct init_link *l)
{
	if (!l || l->closed)
		return;
	l->closed = true;
	uv_close((uv_handle_t *)&l->pipe, init_link_free);
	uv_close((uv_handle_t *)&l->patience, init_link_free);
}
