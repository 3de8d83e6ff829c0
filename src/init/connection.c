/*
 * Connections of the front. Only the front's uid can reach the socket. The first frame of each says
 * what it is for: the processes, of which there is one, and a second one is a newer front and
 * replaces it; file work, and then it is given to a worker; or sockets for previews, which the
 * front connects itself, so that init never sees their bytes. Output is copied into the send
 * buffer only while that is short, so memory stays bounded and a slow front slows the processes.
 */
#include "init/init.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "init/worker.h"

#define GUESTS_MAX  512
#define SEND_TARGET (128u * 1024)
#define RECEIVE_MIN (16u * 1024)
#define RECEIVE_MAX (256u * 1024)
#define PATIENCE_US 1000

/* A connection whose first frame has not come yet. */
struct guest {
	struct source source;
	struct guest *next;
	size_t len;
	char first[FRAME_HEADER_SIZE + sizeof(struct frame_worker) + FRAME_MAX_USER];
};

static struct source listener;
static struct guest *guests;
static size_t guest_count;
static struct source front = {.fd = -1};
static struct buf received;
static struct buf sending;
static int64_t flush_by_us; /* all of `sending` can wait until then; 0: it cannot */

static void connection_drop(void)
{
	loop_close(&front);
	buf_finish(&received);
	buf_finish(&sending);
}

static int init_connection_handle_start(const struct frame_header *h, const char *payload)
{
	struct start_request request;
	int r = frame_decode_start(payload, h->size, &request);
	if (r < 0)
		return r;
	process_start(h->tag, &request);
	start_request_finish(&request);
	return 0;
}

static int init_connection_handle_frame(const struct frame_header *h, const char *payload)
{
	switch (h->type) {
	case FRAME_START:
		return init_connection_handle_start(h, payload);
	case FRAME_STDIN:
		return process_input(h->tag, h->offset, payload, h->size);
	case FRAME_STDIN_END:
		process_input_end(h->tag);
		return 0;
	case FRAME_ACK:
		return process_ack(h->tag, h->stream, h->offset);
	case FRAME_RESIZE:
		return process_resize(h->tag, h->offset);
	case FRAME_SIGNAL:
		process_signal(h->tag, (int)(h->offset & 0xff), h->stream);
		return 0;
	case FRAME_STOP:
		process_stop(h->tag, h->offset);
		return 0;
	case FRAME_INSPECT:
		process_inspect(h->tag);
		return 0;
	case FRAME_KILL:
		process_kill(h->tag);
		return 0;
	case FRAME_FORGET:
		process_forget(h->tag);
		return 0;
	case FRAME_PAUSE:
		process_pause_deadlines();
		connection_send(FRAME_PAUSED, 0, 0, NULL, 0);
		return 0;
	case FRAME_RESUME:
		process_resume_deadlines();
		return 0;
	default:
		return -EPROTO;
	}
}

/* Handle every complete frame; negative when the peer speaks nonsense. */
static int init_connection_handle_received(void)
{
	size_t used = 0;
	while (used < received.len) {
		struct frame_header h;
		int64_t size = frame_decode(received.data + used, received.len - used, &h);
		if (size < 0)
			return -EPROTO;
		if (size == 0)
			break;
		if (init_connection_handle_frame(&h, received.data + used + FRAME_HEADER_SIZE) < 0)
			return -EPROTO;
		used += (size_t)size;
	}
	buf_consume(&received, used);
	return 0;
}

static void front_ready(struct source *s, uint32_t events)
{
	static size_t room = RECEIVE_MIN;
	(void)events;
	if (!buf_reserve(&received, room)) {
		connection_drop();
		return;
	}
	ssize_t n = recv(s->fd, received.data + received.len, room, MSG_DONTWAIT);
	if (n > 0) {
		/* Much stdin comes in large pieces; for the rest little memory is enough. */
		if ((size_t)n == room && room < RECEIVE_MAX)
			room *= 2;
		else if ((size_t)n < RECEIVE_MIN)
			room = RECEIVE_MIN;
		received.len += (size_t)n;
		if (init_connection_handle_received() < 0)
			connection_drop();
		else if (received.len == 0 && room == RECEIVE_MIN && received.cap > 2 * RECEIVE_MIN)
			buf_finish(&received);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		connection_drop();
	}
}

/* Takes fd: from now on it is the connection for the processes. */
static void init_connection_attach(int fd)
{
	connection_drop();
	front = (struct source){.fd = fd, .ready = front_ready};
	if (loop_watch(&front, EPOLLIN) < 0) {
		connection_drop();
		return;
	}
	struct frame_hello hello = {.version = FRAME_VERSION};
	frame_append(&sending, FRAME_HELLO, 0, 0, 0, &hello, sizeof hello);
	process_announce_all(&sending);
	frame_append(&sending, FRAME_READY, 0, 0, 0, NULL, 0);
}

/* ---- connections whose purpose is not known yet ---- */

/* Frees it; its descriptor is the caller's. */
static int guest_leave(struct guest *g)
{
	struct guest **at = &guests;
	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	guest_count--;
	int fd = dup(g->source.fd);
	loop_close(&g->source);
	free(g);
	return fd;
}

static void guest_drop(struct guest *g)
{
	int fd = guest_leave(g);
	if (fd >= 0)
		close(fd);
}

/*
 * Returns how many bytes to read: none beyond the first frame, because the rest may be for a
 * worker. 0: the frame is not complete.
 */
static int64_t guest_wants(const struct guest *g, struct frame_header *h)
{
	if (g->len < FRAME_HEADER_SIZE)
		return FRAME_HEADER_SIZE - (int64_t)g->len;
	memcpy(h, g->first, sizeof *h);
	if (h->size > sizeof g->first - FRAME_HEADER_SIZE ||
		(h->type != FRAME_ATTACH && h->type != FRAME_WORKER && h->type != FRAME_SOCKET))
		return -EPROTO;
	return FRAME_HEADER_SIZE + (int64_t)h->size - (int64_t)g->len;
}

/* Returns false if the front does not take the answer. */
static bool guest_give_socket(int to, uint64_t version)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
			     .cmsg_level = SOL_SOCKET,
			     .cmsg_type = SCM_RIGHTS}};
	autoclose int fd = socket(
		version == 6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char error = fd < 0 ? (char)errno : 0;
	struct iovec part = {&error, sizeof error};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof control;
	}
	return sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof error;
}

static void guest_settle(struct guest *g, const struct frame_header *h)
{
	struct frame_worker worker;
	const char *user;
	if (h->type == FRAME_SOCKET) {
		g->len = 0;
		if (!guest_give_socket(g->source.fd, h->offset))
			guest_drop(g);
		return;
	}
	if (h->type == FRAME_ATTACH) {
		int fd = guest_leave(g);
		if (fd >= 0)
			init_connection_attach(fd);
		return;
	}
	if (frame_decode_worker(g->first + FRAME_HEADER_SIZE, h->size, &worker, &user) < 0) {
		guest_drop(g);
		return;
	}
	autofree char *name = strdup(user);
	int fd = guest_leave(g);
	if (fd >= 0 && name)
		worker_start(fd, &worker, name);
	else if (fd >= 0)
		close(fd);
}

static void guest_ready(struct source *s, uint32_t events)
{
	struct guest *g = (struct guest *)s;
	struct frame_header h;
	int64_t wanted;
	(void)events;
	while ((wanted = guest_wants(g, &h)) > 0) {
		ssize_t n = recv(s->fd, g->first + g->len, (size_t)wanted, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			guest_drop(g);
			return;
		}
		g->len += (size_t)n;
	}
	if (wanted < 0)
		guest_drop(g);
	else
		guest_settle(g, &h);
}

static void listener_ready(struct source *s, uint32_t events)
{
	(void)events;
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct guest *g = fd >= 0 && guest_count < GUESTS_MAX ? calloc(1, sizeof *g) : NULL;
	if (!g) {
		if (fd >= 0)
			close(fd);
		return;
	}
	g->source = (struct source){.fd = fd, .ready = guest_ready};
	g->next = guests;
	guests = g;
	guest_count++;
	if (loop_watch(&g->source, EPOLLIN) < 0)
		guest_drop(g);
}

void connection_open(void)
{
	listener = (struct source){.fd = INIT_LISTEN_FD, .ready = listener_ready};
	fcntl(INIT_LISTEN_FD, F_SETFD, FD_CLOEXEC);
	fcntl(INIT_CGROUP_FD, F_SETFD, FD_CLOEXEC);
	int r = loop_watch(&listener, EPOLLIN);
	assert(r == 0 && "the warden hands over a socket that listens");
	(void)r;
}

void connection_send(
	enum frame_type type, uint64_t tag, uint64_t offset, const void *payload, size_t size)
{
	flush_by_us = 0;
	if (front.fd >= 0)
		frame_append(&sending, type, 0, tag, offset, payload, size);
}

void connection_send_later(
	enum frame_type type, uint64_t tag, uint64_t offset, const void *payload, size_t size)
{
	bool alone = sending.len == 0;
	connection_send(type, tag, offset, payload, size);
	if (alone)
		flush_by_us = clock_monotonic_us() + PATIENCE_US;
}

/* True while the socket takes more. */
static bool init_connection_send_some(void)
{
	ssize_t n = send(front.fd, sending.data, sending.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n >= 0) {
		buf_consume(&sending, (size_t)n);
		return sending.len == 0;
	}
	if (errno != EAGAIN && errno != EINTR)
		connection_drop();
	return false;
}

int64_t connection_flush(void)
{
	bool open = true;
	size_t waiting = sending.len;
	if (front.fd >= 0 && sending.len < SEND_TARGET)
		process_collect(&sending, SEND_TARGET);
	if (flush_by_us && sending.len == waiting && clock_monotonic_us() < flush_by_us)
		return flush_by_us;
	flush_by_us = 0;
	while (front.fd >= 0 && open) {
		if (sending.failed)
			connection_drop();
		if (front.fd < 0 || sending.len == 0)
			break;
		open = init_connection_send_some();
		if (front.fd >= 0 && sending.len < SEND_TARGET)
			process_collect(&sending, SEND_TARGET);
	}
	if (front.fd >= 0)
		loop_watch(&front, sending.len ? EPOLLIN | EPOLLOUT : EPOLLIN);
	return 0;
}
