/*
 * The sandboxes' questions: whatever address they are sent to, port 53 is ours. An answer tells
 * only addresses that could be connected to; a name of the host's own networks has none.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "egress/dns_message.h"
#include "egress/egress.h"

#define QUESTIONS_PER_TURN 32
#define STREAM_IDLE_MS     (10 * 1000)

/* A question that waits for its answer: of a packet, or of a stream. */
struct asked {
	struct asked *prev, *next;
	struct client *client;
	struct name_stream *stream; /* NULL: it came in a packet */
	struct lookup *lookup;
	struct dns_question question;
	struct sockaddr_in6 from;
	struct in6_pktinfo to;
};

struct name_stream {
	struct name_stream *prev, *next;
	struct client *client;
	struct source source;
	struct asked *asked; /* one at a time */
	int64_t active_ms;
	size_t len;
	uint8_t data[2 + 1024];
};

static const struct limit_rate questions_rate = {.per_second = 200, .burst = 400};
static struct asked *questions;
static struct name_stream *streams;

static void name_stream_close(struct name_stream *s);
static void name_stream_next(struct name_stream *s);
static void name_stream_answer(struct name_stream *s, const uint8_t *answer, size_t len);
static void name_stream_ready(struct source *source, uint32_t events);

/* ---- answers ---- */

static void answer_packet(const struct asked *a, const uint8_t *answer, size_t len)
{
	union {
		char space[CMSG_SPACE(sizeof a->to)];
		struct cmsghdr align;
	} control = {.space = {0}};
	struct sockaddr_in6 to = a->from;
	struct iovec bytes = {.iov_base = (void *)(uintptr_t)answer, .iov_len = len};
	struct msghdr message = {.msg_name = &to,
		.msg_namelen = sizeof to,
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof control.space};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	*c = (struct cmsghdr){.cmsg_level = IPPROTO_IPV6,
		.cmsg_type = IPV6_PKTINFO,
		.cmsg_len = CMSG_LEN(sizeof a->to)};
	memcpy(CMSG_DATA(c), &a->to, sizeof a->to);
	sendmsg(a->client->udp.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* What is told is remembered: names decide by it, and are shown by it. */
static bool keeps_address(void *arg, const struct address *a)
{
	const struct asked *asked = arg;
	struct client *c = asked->client;
	if (!guard_allows(c, a, 0))
		return false;
	pins_add(&c->pins, asked->question.text, a, loop.now_ms);
	return true;
}

static void asked_free(struct asked *a)
{
	lookup_cancel(a->lookup);
	DL_DELETE(questions, a);
	if (a->stream)
		a->stream->asked = NULL;
	free(a);
}

static void asked_answer(struct asked *a, const uint8_t *answer, size_t len)
{
	struct name_stream *stream = a->stream;
	if (!stream)
		answer_packet(a, answer, len);
	asked_free(a);
	if (stream)
		name_stream_answer(stream, answer, len);
}

static void asked_answered(void *arg, const uint8_t *answer, size_t len)
{
	static uint8_t out[DNS_ANSWER_MAX];
	struct asked *a = arg;
	size_t room = a->stream ? sizeof out : a->question.room, n = 0;
	a->lookup = NULL;
	if (answer)
		n = dns_write_answer(&a->question, answer, len, keeps_address, a, out, room);
	if (n == 0)
		n = dns_write_code(&a->question, DNS_SERVER_FAILURE, out, room);
	asked_answer(a, out, n);
}

/* ---- questions ---- */

/* What is answered without asking anybody: no keys for a hidden name (ECH), no other protocol. */
static int answer_at_once(const struct dns_question *q)
{
	if (q->type == DNS_HTTPS || q->type == DNS_SVCB)
		return DNS_NO_ERROR;
	if (q->type == DNS_OPT || (q->type >= DNS_TRANSFERS && q->type <= DNS_ANY))
		return DNS_NOT_IMPLEMENTED;
	return -1;
}

static void asked_refuse(struct asked *a, enum dns_code code)
{
	uint8_t out[DNS_QUERY_MAX];
	size_t n = dns_write_code(&a->question, code, out, sizeof out);
	asked_answer(a, out, n);
}

/* Takes `a`, whose question was read with this result. */
static void asked_begin(struct asked *a, int read)
{
	DL_APPEND(questions, a);
	int code = read < 0 ? DNS_FORMAT_ERROR : answer_at_once(&a->question);
	if (read < 0)
		a->question.name_len = 0;
	if (a->client->policy.mode == NETWORK_NONE)
		code = DNS_REFUSED;
	else if (read == 0 && !policy_resolves(&a->client->policy, a->question.text))
		code = DNS_NO_NAME; /* never asked upstream: the question could be a message */
	if (code == DNS_NO_NAME)
		tell_denied(a->client, a->question.text, NULL);
	if (code >= 0) {
		asked_refuse(a, (enum dns_code)code);
		return;
	}
	a->lookup = lookup_begin(a->client, &a->question, asked_answered, a);
	if (!a->lookup)
		asked_refuse(a, DNS_SERVER_FAILURE);
}

static bool read_destination(struct msghdr *message, struct in6_pktinfo *ret)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			memcpy(ret, CMSG_DATA(c), sizeof *ret);
			return true;
		}
	return false;
}

/* Returns false when there is no more. */
static bool read_packet(struct client *c)
{
	uint8_t data[1024];
	union {
		char space[CMSG_SPACE(sizeof(struct in6_pktinfo))];
		struct cmsghdr align;
	} control;
	struct sockaddr_in6 from = {0};
	struct in6_pktinfo to = {0};
	struct iovec bytes = {.iov_base = data, .iov_len = sizeof data};
	struct msghdr message = {.msg_name = &from,
		.msg_namelen = sizeof from,
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof control.space};
	ssize_t n = recvmsg(c->udp.fd, &message, MSG_DONTWAIT);
	if (n < 0)
		return errno == EINTR;
	struct dns_question q;
	int read = dns_read_question(data, (size_t)n, &q);
	if (n < 12 || message.msg_flags & MSG_TRUNC || data[2] & 0x80 ||
		!read_destination(&message, &to))
		return true;
	struct asked *a = mem_new(sizeof *a);
	*a = (struct asked){.client = c, .question = q, .from = from, .to = to};
	asked_begin(a, read);
	return true;
}

void names_ready(struct source *udp, uint32_t events)
{
	struct client *c = (struct client *)((char *)udp - offsetof(struct client, udp));
	(void)events;
	for (int i = 0; i < QUESTIONS_PER_TURN && c->udp.fd >= 0; i++) {
		if (!limit_take(&c->questions, &questions_rate, loop.now_ms))
			return limit_rest(
				&c->udp, &c->resting); /* what does not fit its buffer is lost */
		if (!read_packet(c))
			return limit_use(&c->questions, -1); /* there was none */
	}
}

/* ---- by TCP ---- */

static void name_stream_close(struct name_stream *s)
{
	if (s->asked)
		asked_free(s->asked);
	loop_remove(&s->source);
	DL_DELETE(streams, s);
	s->client->connection_count--;
	egress.connection_count--;
	loop_free_later(s);
}

/* Begins the next question, if all of it is there. */
static void name_stream_next(struct name_stream *s)
{
	size_t wanted = s->len < 2 ? 2 : 2u + (size_t)(s->data[0] << 8 | s->data[1]);
	if (s->asked || (s->len < wanted && wanted <= sizeof s->data))
		return;
	if (wanted > sizeof s->data) {
		name_stream_close(s);
		return;
	}
	if (!limit_take(&s->client->questions, &questions_rate, loop.now_ms))
		return; /* until the next tick */
	struct asked *a = mem_new(sizeof *a);
	a->client = s->client;
	a->stream = s;
	int read = dns_read_question(s->data + 2, wanted - 2, &a->question);
	s->len -= wanted;
	memmove(s->data, s->data + wanted, s->len);
	s->asked = a;
	asked_begin(a, read);
}

/* What a client does not read is not kept. */
static void name_stream_answer(struct name_stream *s, const uint8_t *answer, size_t len)
{
	uint8_t head[2] = {(uint8_t)(len >> 8), (uint8_t)len};
	struct iovec parts[] = {{.iov_base = head, .iov_len = sizeof head},
		{.iov_base = (void *)(uintptr_t)answer, .iov_len = len}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = ARRAY_LEN(parts)};
	s->active_ms = loop.now_ms;
	if (sendmsg(s->source.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) !=
		(ssize_t)(len + sizeof head)) {
		name_stream_close(s);
		return;
	}
	loop_change(&s->source, EPOLLIN); /* what came meanwhile */
	name_stream_next(s);
}

static void name_stream_ready(struct source *source, uint32_t events)
{
	struct name_stream *s =
		(struct name_stream *)((char *)source - offsetof(struct name_stream, source));
	(void)events;
	if (s->asked) {
		loop_change(&s->source, 0); /* until it is answered */
		return;
	}
	ssize_t n = recv(s->source.fd, s->data + s->len, sizeof s->data - s->len, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		const struct linger in_order = {0};
		if (n == 0)
			setsockopt(s->source.fd, SOL_SOCKET, SO_LINGER, &in_order, sizeof in_order);
		name_stream_close(s);
		return;
	}
	s->active_ms = loop.now_ms;
	s->len += (size_t)n;
	name_stream_next(s);
}

void name_stream_begin(struct client *c, int fd)
{
	struct name_stream *s = mem_new(sizeof *s);
	s->client = c;
	s->source = (struct source){fd, name_stream_ready};
	s->active_ms = loop.now_ms;
	DL_APPEND(streams, s);
	c->connection_count++;
	egress.connection_count++;
	if (loop_add(&s->source, EPOLLIN) < 0)
		name_stream_close(s);
}

void name_stream_tick(void)
{
	struct name_stream *s, *next;
	DL_FOREACH_SAFE (streams, s, next)
		if (loop.now_ms - s->active_ms > STREAM_IDLE_MS)
			name_stream_close(s);
		else
			name_stream_next(s);
}

void names_forget(struct client *c)
{
	struct name_stream *s, *next_stream;
	struct asked *a, *next;
	DL_FOREACH_SAFE (streams, s, next_stream)
		if (s->client == c)
			name_stream_close(s);
	DL_FOREACH_SAFE (questions, a, next)
		if (a->client == c)
			asked_free(a);
}
