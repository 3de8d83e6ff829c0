/*
 * Names, asked of the operator's resolvers: by UDP from a port of its own for each question, by TCP
 * when the answer does not fit. An answer counts if it comes from the resolver, has the number we
 * drew, and repeats the question.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "egress/dns_message.h"
#include "egress/egress.h"

#define TRY_MS         1500
#define TRIES          4
#define UDP_ANSWER_MAX 4096

struct lookup {
	struct lookup *prev, *next;
	struct client *client;
	struct source source;
	struct dns_question question;
	uint16_t id;
	unsigned tries;
	int64_t tried_ms;
	bool by_tcp, sent;
	uint8_t *answer; /* by TCP: two bytes of length, then that */
	size_t answer_len;
	lookup_done_fn *done;
	void *arg;
};

static struct lookup *lookups;
static unsigned lookup_count;

static void lookup_ready(struct source *s, uint32_t events);

/* ---- end ---- */

static void lookup_free(struct lookup *l)
{
	loop_remove(&l->source);
	free(l->answer);
	DL_DELETE(lookups, l);
	lookup_count--;
	l->client->lookup_count--;
	loop_free_later(l);
}

void lookup_cancel(struct lookup *l)
{
	if (l)
		lookup_free(l);
}

static void lookup_end(struct lookup *l, const uint8_t *answer, size_t len)
{
	lookup_done_fn *done = l->done;
	void *arg = l->arg;
	uint8_t *kept = take_ptr(l->answer); /* `answer` may lie in it */
	lookup_free(l);
	done(arg, answer, len);
	free(kept);
}

/* ---- asking ---- */

static const struct address_port *lookup_resolver(const struct lookup *l)
{
	uint32_t count = egress.config.resolver_count;
	return count ? &egress.config.resolvers[l->tries % count] : NULL;
}

static int lookup_send(struct lookup *l)
{
	uint8_t query[2 + DNS_QUERY_MAX];
	size_t len = dns_write_query(&l->question, l->id, query + 2);
	query[0] = (uint8_t)(len >> 8);
	query[1] = (uint8_t)len;
	size_t skip = l->by_tcp ? 0 : 2;
	ssize_t n = send(l->source.fd, query + skip, len + 2 - skip, MSG_NOSIGNAL);
	l->sent = true;
	return n == (ssize_t)(len + 2 - skip) ? 0 : -EIO;
}

/* Returns a negative error when this try is none. */
static int lookup_try(struct lookup *l)
{
	struct sockaddr_storage to;
	const struct address_port *resolver = lookup_resolver(l);
	loop_remove(&l->source);
	l->tried_ms = loop.now_ms;
	l->sent = false;
	l->answer_len = 0;
	if (!resolver || getrandom(&l->id, sizeof l->id, 0) != (ssize_t)sizeof l->id)
		return -ENOENT;
	socklen_t len = address_to_socket(resolver, &to);
	l->source.fd = socket(to.ss_family,
		(l->by_tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->source.fd < 0)
		return -errno;
	if (connect(l->source.fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS) {
		close(take_fd(&l->source.fd));
		return -EIO;
	}
	if (!l->by_tcp && lookup_send(l) < 0) {
		close(take_fd(&l->source.fd));
		return -EIO;
	}
	return loop_add(&l->source, l->by_tcp ? EPOLLOUT : EPOLLIN);
}

static void lookup_try_next(struct lookup *l)
{
	while (++l->tries < TRIES)
		if (lookup_try(l) == 0)
			return;
	lookup_end(l, NULL, 0);
}

struct lookup *lookup_begin(
	struct client *c, const struct dns_question *q, lookup_done_fn *done, void *arg)
{
	if (c->lookup_count >= LOOKUPS_PER_SANDBOX || lookup_count >= LOOKUPS_MAX)
		return NULL;
	struct lookup *l = mem_new(sizeof *l);
	l->client = c;
	l->source = (struct source){-1, lookup_ready};
	l->question = *q;
	l->done = done;
	l->arg = arg;
	DL_APPEND(lookups, l);
	lookup_count++;
	c->lookup_count++;
	if (lookup_try(l) < 0)
		l->tried_ms = loop.now_ms - TRY_MS; /* the next tick goes on */
	return l;
}

/* ---- answers ---- */

static void lookup_ask_by_tcp(struct lookup *l)
{
	l->by_tcp = true;
	if (!l->answer)
		l->answer = mem_new(2 + DNS_ANSWER_MAX);
	if (lookup_try(l) < 0)
		lookup_try_next(l);
}

static void lookup_read_packet(struct lookup *l)
{
	uint8_t answer[UDP_ANSWER_MAX];
	bool truncated = false;
	ssize_t n = recv(l->source.fd, answer, sizeof answer, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0)
		lookup_try_next(l); /* nobody listens there */
	else if (!dns_is_answer(answer, (size_t)n, &l->question, l->id, &truncated))
		return; /* the true one may follow */
	else if (truncated)
		lookup_ask_by_tcp(l);
	else
		lookup_end(l, answer, (size_t)n);
}

static void lookup_read_stream(struct lookup *l)
{
	bool truncated;
	ssize_t n = recv(
		l->source.fd, l->answer + l->answer_len, 2 + DNS_ANSWER_MAX - l->answer_len, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	l->answer_len += n > 0 ? (size_t)n : 0;
	size_t wanted = l->answer_len < 2 ? 2 : 2u + (size_t)(l->answer[0] << 8 | l->answer[1]);
	if (l->answer_len < wanted && n > 0)
		return;
	if (l->answer_len < wanted ||
		!dns_is_answer(l->answer + 2, wanted - 2, &l->question, l->id, &truncated))
		lookup_try_next(l);
	else
		lookup_end(l, l->answer + 2, wanted - 2);
}

static void lookup_ready(struct source *s, uint32_t events)
{
	struct lookup *l = (struct lookup *)((char *)s - offsetof(struct lookup, source));
	(void)events;
	if (!l->by_tcp)
		lookup_read_packet(l);
	else if (l->sent)
		lookup_read_stream(l);
	else if (lookup_send(l) < 0)
		lookup_try_next(l);
	else
		loop_change(&l->source, EPOLLIN);
}

void lookup_tick(void)
{
	struct lookup *l, *next;
	DL_FOREACH_SAFE (lookups, l, next)
		if (loop.now_ms - l->tried_ms >= TRY_MS)
			lookup_try_next(l);
}
