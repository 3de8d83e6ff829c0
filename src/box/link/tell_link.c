/* Everything that is kept or sent is overwritten before it is freed: it may have secrets in it. */
#include "box/link/tell_link.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uthash.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#define RETRY_MS        20
#define CALL_TIMEOUT_US (10 * 1000000)
#define MESSAGE_MAX     1024 /* of what is told to us */

struct tell_known {
	char id[ID_SIZE];
	size_t len;
	char *body;
	UT_hash_handle by_id;
	_Alignas(8) char fixed[TELL_FIXED_MAX];
};

struct tell_packet {
	struct tell_packet *prev, *next;
	size_t len;
	_Alignas(8) char data[];
};

struct tell_call {
	struct tell_call *prev, *next;
	uint32_t sequence;
	int64_t since_us;
	tell_done_fn *done;
	void *arg;
};

static void tell_link_ready(uv_poll_t *poll, int status, int events);

/* ---- sending ---- */

static void tell_packet_free(struct tell_link *l, struct tell_packet *p)
{
	DL_DELETE(l->packets, p);
	explicit_bzero(p->data, p->len);
	free(p);
}

static void tell_link_flush(struct tell_link *l)
{
	while (l->poll && l->packets) {
		const struct tell_packet *p = l->packets;
		if (send(l->fd, p->data, p->len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			break; /* an end is seen by reading */
		tell_packet_free(l, l->packets);
	}
	if (l->poll)
		uv_poll_start(l->poll, l->packets ? UV_READABLE | UV_WRITABLE : UV_READABLE,
			tell_link_ready);
}

/* Returns where a message of this length is to be written; NULL while nobody listens. */
static char *tell_link_queue(struct tell_link *l, size_t len)
{
	if (!l->poll)
		return NULL; /* everything is told anew when it is connected */
	struct tell_packet *p = mem_new(sizeof *p + len);
	p->len = len;
	DL_APPEND(l->packets, p);
	return p->data;
}

static void tell_queue_head(struct tell_link *l, uint32_t op, uint32_t sequence, const char *id)
{
	struct tell_head head = {.op = op, .sequence = sequence};
	char *message = tell_link_queue(l, sizeof head);
	memcpy(head.id, id, strnlen(id, ID_LEN));
	if (message)
		memcpy(message, &head, sizeof head);
}

static void tell_queue_known(struct tell_link *l, const struct tell_known *k, uint32_t sequence)
{
	const struct tell_protocol *p = l->protocol;
	size_t at = 0;
	do {
		size_t len = k->len - at < p->part_max ? k->len - at : p->part_max;
		struct tell_head head = {.op = p->set};
		const struct tell_part part = {(uint32_t)k->len, (uint32_t)at, (uint32_t)len};
		char *message = tell_link_queue(l, p->fixed_size + len);
		if (!message)
			return;
		memcpy(head.id, k->id, ID_LEN);
		if (at + len == k->len)
			head.sequence = sequence;
		memcpy(message, k->fixed, p->fixed_size);
		memcpy(message, &head, sizeof head);
		memcpy(message + p->fixed_size - sizeof part, &part, sizeof part);
		if (len > 0)
			memcpy(message + p->fixed_size, k->body + at, len);
		at += len;
	} while (at < k->len);
}

/* The last message is answered for all that were asked before. */
static void tell_link_tell_all(struct tell_link *l)
{
	tell_queue_head(l, l->protocol->begin, 0, "");
	for (const struct tell_known *k = l->known; k; k = k->by_id.next)
		tell_queue_known(l, k, 0);
	if (l->complete)
		tell_queue_head(l, l->protocol->end, 0, "");
	tell_queue_head(l, l->protocol->forget, l->sequence, "");
	tell_link_flush(l);
}

/* ---- calls ---- */

static uint32_t tell_call_new(struct tell_link *l, tell_done_fn *done, void *arg)
{
	if (!done)
		return 0;
	struct tell_call *call = mem_new(sizeof *call);
	*call = (struct tell_call){.sequence = ++l->sequence,
		.since_us = clock_monotonic_us(),
		.done = done,
		.arg = arg};
	DL_APPEND(l->calls, call);
	return call->sequence;
}

static void tell_call_end(struct tell_link *l, struct tell_call *call, int error)
{
	DL_DELETE(l->calls, call);
	call->done(call->arg, error);
	free(call);
}

/* Messages are carried out in order: an answer is one for those before, too. */
static void tell_calls_done(struct tell_link *l, uint32_t sequence)
{
	while (l->calls && l->calls->sequence <= sequence)
		tell_call_end(l, l->calls, 0);
}

void tell_link_fail(struct tell_link *l, int error)
{
	uint32_t last = l->sequence;
	while (l->calls && l->calls->sequence <= last)
		tell_call_end(l, l->calls, error);
}

static void tell_timer_fired(uv_timer_t *timer)
{
	struct tell_link *l = timer->data;
	int64_t now = clock_monotonic_us();
	tell_link_connect(l);
	if (!l->poll && l->protocol->absent)
		l->protocol->absent(l->arg);
	while (l->calls && now - l->calls->since_us > CALL_TIMEOUT_US)
		tell_call_end(l, l->calls, ETIMEDOUT);
	if (l->poll && !l->calls)
		uv_timer_stop(timer);
}

static void tell_timer_arm(struct tell_link *l)
{
	if (!uv_is_active((uv_handle_t *)&l->timer))
		uv_timer_start(&l->timer, tell_timer_fired, RETRY_MS, RETRY_MS);
}

/* ---- what is known ---- */

static struct tell_known *tell_known_find(struct tell_link *l, const char *id)
{
	struct tell_known *k = NULL;
	HASH_FIND(by_id, l->known, id, ID_LEN, k);
	return k;
}

static void tell_known_clear(struct tell_known *k)
{
	if (k->body)
		explicit_bzero(k->body, k->len);
	free(k->body);
	k->body = NULL;
	k->len = 0;
}

static void tell_known_free(struct tell_link *l, struct tell_known *k)
{
	HASH_DELETE(by_id, l->known, k);
	tell_known_clear(k);
	free(k);
}

void tell_link_set(struct tell_link *l, const char *id, const void *fixed, const struct buf *body,
	tell_done_fn *done, void *arg)
{
	struct tell_known *k = tell_known_find(l, id);
	if (!k) {
		k = mem_new(sizeof *k);
		memcpy(k->id, id, ID_LEN);
		HASH_ADD(by_id, l->known, id[0], ID_LEN, k);
	}
	tell_known_clear(k);
	memcpy(k->fixed, fixed, l->protocol->fixed_size);
	if (body->len > 0) {
		k->body = mem_copy(body->data, body->len);
		k->len = body->len;
	}
	tell_queue_known(l, k, tell_call_new(l, done, arg));
	tell_link_flush(l);
	tell_timer_arm(l);
}

void tell_link_forget(struct tell_link *l, const char *id, tell_done_fn *done, void *arg)
{
	struct tell_known *k = tell_known_find(l, id);
	if (k)
		tell_known_free(l, k);
	tell_queue_head(l, l->protocol->forget, tell_call_new(l, done, arg), id);
	tell_link_flush(l);
	tell_timer_arm(l);
}

void tell_link_complete(struct tell_link *l)
{
	if (!l->complete)
		tell_queue_head(l, l->protocol->end, 0, "");
	l->complete = true;
	tell_link_flush(l);
}

/* ---- the connection ---- */

static void tell_poll_freed(uv_handle_t *handle)
{
	free(handle);
}

static void tell_link_disconnect(struct tell_link *l)
{
	if (!l->poll)
		return;
	uv_close((uv_handle_t *)l->poll, tell_poll_freed);
	l->poll = NULL;
	close(take_fd(&l->fd));
	while (l->packets)
		tell_packet_free(l, l->packets);
}

/* What comes is of a process that reads hostile bytes: lengths and ids are looked at. */
static void tell_link_take(struct tell_link *l, char *message, size_t len)
{
	struct tell_head head;
	memcpy(&head, message, sizeof head);
	message[offsetof(struct tell_head, id) + ID_LEN] = '\0';
	head.id[ID_LEN] = '\0';
	if (head.op == l->protocol->done && len == sizeof head)
		tell_calls_done(l, head.sequence);
	else if (l->protocol->told && id_is_valid(head.id))
		l->protocol->told(l->arg, message, len);
}

static void tell_link_ready(uv_poll_t *poll, int status, int events)
{
	struct tell_link *l = poll->data;
	(void)status;
	if (events & UV_WRITABLE)
		tell_link_flush(l);
	for (;;) {
		_Alignas(8) char message[MESSAGE_MAX];
		ssize_t n = recv(l->fd, message, sizeof message, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			log_warn("a connection is lost; connecting again", "to", l->protocol->peer);
			tell_link_disconnect(l);
			tell_timer_arm(l);
			return;
		}
		if (n >= (ssize_t)sizeof(struct tell_head))
			tell_link_take(l, message, (size_t)n);
		if (poll != l->poll)
			return; /* closed by who was told */
	}
}

void tell_link_connect(struct tell_link *l)
{
	if (l->poll)
		return;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%s", l->path);
	autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return;
	uv_poll_t *poll = mem_new(sizeof *poll);
	if (uv_poll_init(l->loop, poll, fd) < 0) {
		free(poll);
		return;
	}
	poll->data = l;
	l->poll = poll;
	l->fd = take_fd(&fd);
	tell_link_tell_all(l);
}

void tell_link_open(struct tell_link *l, const struct tell_protocol *protocol, uv_loop_t *loop,
	const char *path, void *arg)
{
	assert(protocol->fixed_size <= TELL_FIXED_MAX);
	*l = (struct tell_link){.protocol = protocol, .loop = loop, .fd = -1, .arg = arg};
	snprintf(l->path, sizeof l->path, "%s", path);
	uv_timer_init(loop, &l->timer);
	l->timer.data = l;
	tell_timer_arm(l);
}

bool tell_link_is_busy(const struct tell_link *l)
{
	return l->calls != NULL;
}

bool tell_link_is_empty(const struct tell_link *l)
{
	return !l->calls && !l->known;
}

static void tell_timer_closed(uv_handle_t *handle)
{
	struct tell_link *l = handle->data;
	l->closed(l->closed_arg);
}

void tell_link_close(struct tell_link *l, void (*closed)(void *arg), void *arg)
{
	struct tell_call *call, *next_call;
	struct tell_known *k, *next;
	l->closed = closed;
	l->closed_arg = arg;
	tell_link_flush(l);
	tell_link_disconnect(l);
	DL_FOREACH_SAFE (l->calls, call, next_call)
		free(call);
	l->calls = NULL;
	HASH_ITER (by_id, l->known, k, next)
		tell_known_free(l, k);
	uv_close((uv_handle_t *)&l->timer, tell_timer_closed);
}
