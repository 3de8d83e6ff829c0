/* The sandboxes: their sockets, their policies, and how much of us each may have. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "egress/egress.h"

#define ACCEPTS_PER_TURN 32

#define ACCEPTS_BURST_MIN 256 /* what a browser or a package manager opens at once */

static void client_accept(struct source *s, uint32_t events);

struct client *client_find(const char *id)
{
	struct client *c = NULL;
	HASH_FIND(by_id, egress.clients, id, ID_LEN, c);
	return c;
}

static struct client *client_get(const char *id)
{
	struct client *c = client_find(id);
	if (c)
		return c;
	c = mem_new(sizeof *c);
	memcpy(c->id, id, ID_LEN);
	c->tcp = (struct source){-1, client_accept};
	c->udp = (struct source){-1, names_ready};
	c->link_fd = -1;
	HASH_ADD(by_id, egress.clients, id[0], ID_LEN, c);
	return c;
}

/* ---- sockets ---- */

static void client_close_sockets(struct client *c)
{
	loop_remove(&c->tcp);
	loop_remove(&c->udp);
	if (c->link_fd >= 0)
		close(take_fd(&c->link_fd));
	c->resting = false;
}

/* Not before it has both: without a policy nothing is accepted, and connections wait. */
static void client_watch(struct client *c)
{
	if (!c->has_policy || c->tcp.fd < 0)
		return;
	/* Watched already: the kernel says EEXIST, and nothing changes. */
	struct epoll_event tcp = {.events = EPOLLIN, .data.ptr = &c->tcp},
			   udp = {.events = EPOLLIN, .data.ptr = &c->udp};
	epoll_ctl(loop.epoll_fd, EPOLL_CTL_ADD, c->tcp.fd, &tcp);
	epoll_ctl(loop.epoll_fd, EPOLL_CTL_ADD, c->udp.fd, &udp);
	c->resting = false;
}

void client_open(const struct egress_open *open, int tcp, int udp, int link)
{
	struct client *c = client_get(open->head.id);
	client_close_sockets(c);
	if (c->namespace != open->namespace)
		connection_reset_all(c); /* of an earlier boot */
	c->namespace = open->namespace;
	c->tcp.fd = tcp;
	c->udp.fd = udp;
	c->link_fd = link;
	client_watch(c);
}

/* ---- policies ---- */

static void client_set_policy(struct client *c, const struct policy *policy)
{
	policy_finish(&c->policy);
	c->policy = *policy;
	c->has_policy = c->is_fresh = true;
	if (c->policy.mode == NETWORK_NONE)
		names_forget(c);
	connection_review(c);
	client_watch(c);
}

bool client_take_policy(const struct egress_policy *part, const uint8_t *rules)
{
	struct client *c = client_get(part->head.id);
	struct policy policy;
	if (part->part_at == 0) {
		free(c->coming);
		c->coming = mem_new((size_t)part->rules_size + 1);
		c->coming_size = part->rules_size;
	}
	if (!c->coming || c->coming_size != part->rules_size)
		return false;
	memcpy(c->coming + part->part_at, rules, part->part_size);
	if (part->part_at + part->part_size < part->rules_size)
		return true;
	if (policy_init(&policy, (enum network_mode)part->mode, take_ptr(c->coming),
		    part->rules_size) < 0)
		return false;
	memcpy(policy.broker, part->broker, ID_LEN);
	client_set_policy(c, &policy);
	return true;
}

void client_forget(struct client *c)
{
	if (!c)
		return;
	connection_reset_all(c);
	tell_client(c);
	names_forget(c);
	client_close_sockets(c);
	policy_finish(&c->policy);
	pins_finish(&c->pins);
	destinations_finish(&c->destinations);
	free(take_ptr(c->coming));
	HASH_DELETE(by_id, egress.clients, c);
	loop_free_later(c);
}

void client_begin_sync(void)
{
	for (struct client *c = egress.clients; c; c = c->by_id.next)
		c->is_fresh = false;
}

void client_tell_all_anew(void)
{
	for (struct client *c = egress.clients; c; c = c->by_id.next)
		destinations_untell(&c->destinations);
}

void client_forget_all_but_fresh(void)
{
	struct client *c, *next;
	HASH_ITER (by_id, egress.clients, c, next)
		if (!c->is_fresh)
			client_forget(c);
}

void client_close_listeners(void)
{
	for (struct client *c = egress.clients; c; c = c->by_id.next)
		client_close_sockets(c);
}

/* ---- accepting ---- */

static void close_by_reset(int fd)
{
	const struct linger now = {.l_onoff = 1};
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	close(fd);
}

static bool client_is_full(const struct client *c)
{
	return c->connection_count >= CONNECTIONS_PER_SANDBOX ||
	       egress.connection_count >= egress.connection_max;
}

/* Whether it may have one connection more now. */
static bool client_may_accept(struct client *c)
{
	const int64_t rate = egress.config.connection_rate;
	const struct limit_rate accepts = {
		rate, rate < ACCEPTS_BURST_MIN ? ACCEPTS_BURST_MIN : rate};
	return rate == 0 || limit_take(&c->accepts, &accepts, loop.now_ms);
}

static void client_accept(struct source *s, uint32_t events)
{
	struct client *c = (struct client *)((char *)s - offsetof(struct client, tcp));
	(void)events;
	for (int i = 0; i < ACCEPTS_PER_TURN && c->tcp.fd >= 0; i++) {
		if (!client_may_accept(c))
			return limit_rest(&c->tcp, &c->resting); /* the others wait in the kernel */
		int fd = accept4(c->tcp.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0 && client_is_full(c))
			close_by_reset(fd);
		else if (fd >= 0)
			connection_begin(c, fd);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			return limit_rest(&c->tcp, &c->resting);
		else if (errno != ECONNABORTED && errno != EINTR)
			return limit_use(&c->accepts, -1); /* there was none */
	}
}

void client_tick(void)
{
	for (struct client *c = egress.clients; c; c = c->by_id.next)
		if (c->resting)
			client_watch(c);
}
