#include "box/link/egress_link.h"

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

struct egress_known {
	char id[ID_SIZE];
	enum network_mode mode;
	struct buf rules;
	UT_hash_handle by_id;
};

struct egress_packet {
	struct egress_packet *prev, *next;
	size_t len;
	_Alignas(8) char data[];
};

struct egress_call {
	struct egress_call *prev, *next;
	uint32_t sequence;
	int64_t since_us;
	egress_done_fn *done;
	void *arg;
};

static void egress_link_ready(uv_poll_t *poll, int status, int events);
static void link_connect(struct egress_link *l);

/* ---- sending ---- */

static void packets_drop(struct egress_link *l)
{
	struct egress_packet *p, *next;
	DL_FOREACH_SAFE (l->packets, p, next)
		free(p);
	l->packets = NULL;
}

static void link_flush(struct egress_link *l)
{
	while (l->poll && l->packets) {
		struct egress_packet *p = l->packets;
		if (send(l->fd, p->data, p->len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			break; /* an end is seen by reading */
		DL_DELETE(l->packets, p);
		free(p);
	}
	if (l->poll)
		uv_poll_start(l->poll, l->packets ? UV_READABLE | UV_WRITABLE : UV_READABLE,
			egress_link_ready);
}

static void link_queue(struct egress_link *l, const void *message, size_t len)
{
	if (!l->poll)
		return; /* everything is told anew when it is connected */
	struct egress_packet *p = mem_new(sizeof *p + len);
	p->len = len;
	memcpy(p->data, message, len);
	DL_APPEND(l->packets, p);
}

static void queue_head(struct egress_link *l, enum egress_op op, uint32_t sequence, const char *id)
{
	struct egress_head head = {.op = op, .sequence = sequence};
	memcpy(head.id, id, strnlen(id, ID_LEN));
	link_queue(l, &head, sizeof head);
}

static void queue_policy(struct egress_link *l, const struct egress_known *k, uint32_t sequence)
{
	size_t at = 0;
	do {
		size_t left = k->rules.len - at;
		struct egress_policy part = {.head.op = EGRESS_POLICY,
			.mode = k->mode,
			.rules_size = (uint32_t)k->rules.len,
			.part_at = (uint32_t)at,
			.part_size =
				(uint32_t)(left < EGRESS_RULES_PART ? left : EGRESS_RULES_PART)};
		autobuf message = {0};
		memcpy(part.head.id, k->id, ID_LEN);
		if (at + part.part_size == k->rules.len)
			part.head.sequence = sequence;
		buf_append(&message, &part, sizeof part);
		if (part.part_size > 0)
			buf_append(&message, k->rules.data + at, part.part_size);
		buf_require(&message);
		link_queue(l, message.data, message.len);
		at += part.part_size;
	} while (at < k->rules.len);
}

/* The last message is answered for all that were asked before. */
static void link_tell_all(struct egress_link *l)
{
	queue_head(l, EGRESS_BEGIN, 0, "");
	for (struct egress_known *k = l->known; k; k = k->by_id.next)
		queue_policy(l, k, 0);
	if (l->complete)
		queue_head(l, EGRESS_END, 0, "");
	queue_head(l, EGRESS_FORGET, l->sequence, "");
	link_flush(l);
}

/* ---- calls ---- */

static uint32_t egress_call_new(struct egress_link *l, egress_done_fn *done, void *arg)
{
	if (!done)
		return 0;
	struct egress_call *call = mem_new(sizeof *call);
	*call = (struct egress_call){.sequence = ++l->sequence,
		.since_us = clock_monotonic_us(),
		.done = done,
		.arg = arg};
	DL_APPEND(l->calls, call);
	return call->sequence;
}

static void egress_call_end(struct egress_link *l, struct egress_call *call, int error)
{
	DL_DELETE(l->calls, call);
	call->done(call->arg, error);
	free(call);
}

/* Messages are carried out in order: an answer is one for those before, too. */
static void calls_done(struct egress_link *l, uint32_t sequence)
{
	while (l->calls && l->calls->sequence <= sequence)
		egress_call_end(l, l->calls, 0);
}

static void timer_fired(uv_timer_t *timer)
{
	struct egress_link *l = timer->data;
	int64_t now = clock_monotonic_us();
	if (!l->poll)
		link_connect(l);
	while (l->calls && now - l->calls->since_us > CALL_TIMEOUT_US)
		egress_call_end(l, l->calls, ETIMEDOUT);
	if (l->poll && !l->calls)
		uv_timer_stop(timer);
}

static void timer_arm(struct egress_link *l)
{
	if (!uv_is_active((uv_handle_t *)&l->timer))
		uv_timer_start(&l->timer, timer_fired, RETRY_MS, RETRY_MS);
}

static void known_free(struct egress_link *l, struct egress_known *k)
{
	HASH_DELETE(by_id, l->known, k);
	buf_finish(&k->rules);
	free(k);
}

void egress_link_set(struct egress_link *l, const char *id, enum network_mode mode,
	const struct buf *rules, egress_done_fn *done, void *arg)
{
	struct egress_known *k = NULL;
	HASH_FIND(by_id, l->known, id, ID_LEN, k);
	if (!k) {
		k = mem_new(sizeof *k);
		memcpy(k->id, id, ID_LEN);
		HASH_ADD(by_id, l->known, id[0], ID_LEN, k);
	}
	k->mode = mode;
	k->rules.len = 0;
	if (rules->len > 0)
		buf_append(&k->rules, rules->data, rules->len);
	buf_require(&k->rules);
	queue_policy(l, k, egress_call_new(l, done, arg));
	link_flush(l);
	timer_arm(l);
}

void egress_link_forget(struct egress_link *l, const char *id, egress_done_fn *done, void *arg)
{
	struct egress_known *k = NULL;
	HASH_FIND(by_id, l->known, id, ID_LEN, k);
	if (k)
		known_free(l, k);
	queue_head(l, EGRESS_FORGET, egress_call_new(l, done, arg), id);
	link_flush(l);
	timer_arm(l);
}

void egress_link_complete(struct egress_link *l)
{
	if (!l->complete)
		queue_head(l, EGRESS_END, 0, "");
	l->complete = true;
	link_flush(l);
}

/* ---- the connection ---- */

static void poll_freed(uv_handle_t *handle)
{
	free(handle);
}

static void link_disconnect(struct egress_link *l)
{
	if (!l->poll)
		return;
	uv_close((uv_handle_t *)l->poll, poll_freed);
	l->poll = NULL;
	close(take_fd(&l->fd));
	packets_drop(l);
}

/* What comes is of a process that reads hostile bytes: lengths and texts are looked at. */
static void link_take(struct egress_link *l, union egress_told *message, size_t len)
{
	const struct egress_head *head = &message->head;
	message->head.id[ID_LEN] = '\0';
	if (head->op == EGRESS_DONE && len == sizeof *head)
		calls_done(l, head->sequence);
	if (!id_is_valid(head->id))
		return;
	if (head->op == EGRESS_DENIED && len == sizeof message->denied)
		message->denied.host[sizeof message->denied.host - 1] = '\0';
	else if (head->op == EGRESS_TRAFFIC && len == sizeof message->traffic)
		message->traffic.host[sizeof message->traffic.host - 1] = '\0';
	else if (head->op != EGRESS_COUNTS || len != sizeof message->counts)
		return;
	l->told(l->told_arg, message);
}

static void egress_link_ready(uv_poll_t *poll, int status, int events)
{
	struct egress_link *l = poll->data;
	(void)status;
	if (events & UV_WRITABLE)
		link_flush(l);
	for (;;) {
		union egress_told message;
		ssize_t n = recv(l->fd, &message, sizeof message, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			log_warn("the connection to bunker-egress is lost; connecting again");
			link_disconnect(l);
			timer_arm(l);
			return;
		}
		if (n >= (ssize_t)sizeof message.head)
			link_take(l, &message, (size_t)n);
		if (poll != l->poll)
			return; /* closed by who was told */
	}
}

static void link_connect(struct egress_link *l)
{
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
	link_tell_all(l);
}

void egress_link_open(struct egress_link *l, uv_loop_t *loop, const char *run_dir,
	egress_told_fn *told, void *told_arg)
{
	*l = (struct egress_link){.loop = loop, .fd = -1, .told = told, .told_arg = told_arg};
	snprintf(l->path, sizeof l->path, "%s/" EGRESS_SOCKET, run_dir);
	uv_timer_init(loop, &l->timer);
	l->timer.data = l;
	link_connect(l);
	timer_arm(l);
}

bool egress_link_is_busy(const struct egress_link *l)
{
	return l->calls != NULL;
}

static void link_timer_closed(uv_handle_t *handle)
{
	struct egress_link *l = handle->data;
	l->closed(l->closed_arg);
}

void egress_link_close(struct egress_link *l, void (*closed)(void *arg), void *arg)
{
	struct egress_call *call, *next_call;
	struct egress_known *k, *next;
	l->closed = closed;
	l->closed_arg = arg;
	link_flush(l);
	link_disconnect(l);
	DL_FOREACH_SAFE (l->calls, call, next_call)
		free(call);
	l->calls = NULL;
	HASH_ITER (by_id, l->known, k, next)
		known_free(l, k);
	uv_close((uv_handle_t *)&l->timer, link_timer_closed);
}
