/*
 * Connections of those who tell us what to do: root (bunker-wire), who brings sockets, and the
 * front, who brings policies. Neither is waited for: who does not read its answers is closed, and
 * says everything anew when it connects again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "egress/egress.h"

#define OPEN_FDS          3
#define RETIRE_MS         (60 * 60 * 1000)
#define MESSAGES_PER_TURN 64

struct peer {
	struct peer *prev, *next;
	struct source source;
	bool is_root;
};

static struct source listener;
static struct peer *peers;
static uint8_t packet[EGRESS_MESSAGE_MAX];

static void peer_close(struct peer *p)
{
	loop_remove(&p->source);
	DL_DELETE(peers, p);
	loop_free_later(p);
}

static void peer_send(struct peer *p, const void *message, size_t len)
{
	if (p->source.fd >= 0 && send(p->source.fd, message, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		peer_close(p);
}

/* ---- root's ---- */

static void take_hello(struct peer *p)
{
	struct egress_hello hello = {.head = {.op = EGRESS_HELLO, .sequence = EGRESS_PROTOCOL}};
	memcpy(hello.version, BUNKER_VERSION, sizeof BUNKER_VERSION);
	peer_send(p, &hello, sizeof hello);
	for (const struct client *c = egress.clients; c; c = c->by_id.next) {
		struct egress_open held = {.head = {.op = EGRESS_HELD}, .namespace = c->namespace};
		memcpy(held.head.id, c->id, ID_SIZE);
		if (c->tcp.fd >= 0)
			peer_send(p, &held, sizeof held);
	}
	peer_send(
		p, &(struct egress_open){.head = {.op = EGRESS_HELD}}, sizeof(struct egress_open));
}

static void take_config(const uint8_t *message, size_t len)
{
	struct egress_config config;
	if (len != sizeof config)
		return;
	memcpy(&config, message, sizeof config);
	if (config.resolver_count <= EGRESS_RESOLVERS_MAX &&
		config.public_count <= EGRESS_RANGES_MAX &&
		config.private_count <= EGRESS_RANGES_MAX)
		egress.config = config;
}

static void take_open(const uint8_t *message, size_t len, int fds[OPEN_FDS])
{
	struct egress_open open;
	if (len != sizeof open || fds[OPEN_FDS - 1] < 0 || egress.retired)
		return;
	memcpy(&open, message, sizeof open);
	if (!id_is_valid(open.head.id))
		return;
	client_open(&open, fds[0], fds[1], fds[2]);
	for (int i = 0; i < OPEN_FDS; i++)
		fds[i] = -1;
}

static void control_retire(void)
{
	egress.retired = true;
	egress.retired_ms = egress.now_ms;
	loop_remove(&listener);
	client_close_listeners();
}

static unsigned count_clients(void)
{
	return HASH_CNT(by_id, egress.clients);
}

static void peer_read_all(struct peer *p);

static void take_part(struct peer *p)
{
	struct peer *other, *next;
	DL_FOREACH_SAFE (peers, other, next) /* what they have said already counts */
		if (other != p)
			peer_read_all(other);
	const struct egress_head answer = {.op = EGRESS_PART, .sequence = count_clients()};
	peer_send(p, &answer, sizeof answer);
	if (answer.sequence == 0)
		_exit(0);
}

/* ---- the front's ---- */

static bool take_policy(const uint8_t *message, size_t len)
{
	struct egress_policy policy;
	if (len < sizeof policy)
		return false;
	memcpy(&policy, message, sizeof policy);
	if (policy.mode >= NETWORK_MODE_COUNT || !id_is_valid(policy.head.id) ||
		policy.rules_size > EGRESS_RULES_SIZE || policy.part_at > policy.rules_size ||
		policy.part_size > policy.rules_size - policy.part_at ||
		policy.part_size != len - sizeof policy)
		return false;
	return client_take_policy(&policy, message + sizeof policy);
}

static bool take_front(const struct egress_head *head, const uint8_t *message, size_t len)
{
	switch (head->op) {
	case EGRESS_BEGIN:
		client_begin_sync();
		return true;
	case EGRESS_POLICY:
		return take_policy(message, len);
	case EGRESS_FORGET:
		client_forget(client_find(head->id));
		return true;
	case EGRESS_END:
		client_forget_all_but_fresh();
		return true;
	default:
		return false;
	}
}

static bool control_tell_front(const void *message, size_t len)
{
	struct peer *p, *next;
	bool told = false;
	DL_FOREACH_SAFE (peers, p, next) {
		if (p->is_root)
			continue;
		peer_send(p, message, len);
		told |= p->source.fd >= 0;
	}
	return told;
}

/* ---- both ---- */

static void take_root(struct peer *p, const struct egress_head *head, size_t len, int fds[OPEN_FDS])
{
	if (head->op == EGRESS_HELLO)
		take_hello(p);
	else if (head->op == EGRESS_CONFIGURE)
		take_config(packet, len);
	else if (head->op == EGRESS_OPEN)
		take_open(packet, len, fds);
	else if (head->op == EGRESS_RETIRE)
		control_retire();
	else if (head->op == EGRESS_PART)
		take_part(p);
}

static void take_message(struct peer *p, size_t len, int fds[OPEN_FDS])
{
	struct egress_head head;
	if (len < sizeof head)
		return;
	memcpy(&head, packet, sizeof head);
	head.id[ID_LEN] = '\0';
	if (p->is_root) {
		take_root(p, &head, len, fds);
		return;
	}
	if (egress.retired || !take_front(&head, packet, len)) {
		peer_close(p); /* it speaks another version, or is not itself */
		return;
	}
	if (head.sequence) {
		head.op = EGRESS_DONE;
		peer_send(p, &head, sizeof head);
	}
}

/* Returns the length, 0 at the end, negative when there is nothing now. */
static ssize_t peer_receive(struct peer *p, int fds[OPEN_FDS])
{
	union {
		char space[CMSG_SPACE(OPEN_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec bytes = {.iov_base = packet, .iov_len = sizeof packet};
	struct msghdr message = {.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = p->is_root ? control.space : NULL,
		.msg_controllen = p->is_root ? sizeof control.space : 0};
	for (int i = 0; i < OPEN_FDS; i++)
		fds[i] = -1;
	ssize_t n = recvmsg(p->source.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? -1 : 0;
	const struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	return n;
}

/* Reads one message. Returns false when there is none. */
static bool peer_read(struct peer *p)
{
	int fds[OPEN_FDS];
	ssize_t n = peer_receive(p, fds);
	if (n == 0)
		peer_close(p);
	else if (n > 0)
		take_message(p, (size_t)n, fds);
	for (int i = 0; i < OPEN_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return n > 0 && p->source.fd >= 0;
}

static void peer_read_all(struct peer *p)
{
	for (int i = 0; i < MESSAGES_PER_TURN; i++)
		if (!peer_read(p))
			return;
}

static void peer_ready(struct source *s, uint32_t events)
{
	(void)events;
	peer_read_all((struct peer *)((char *)s - offsetof(struct peer, source)));
}

static void control_accept(struct source *s, uint32_t events)
{
	struct ucred who;
	socklen_t len = sizeof who;
	(void)events;
	int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0) {
		close(fd);
		return;
	}
	/* Who else may connect is decided by the owner of the socket's name: it is the front. */
	struct peer *p = mem_new(sizeof *p);
	p->source = (struct source){fd, peer_ready};
	p->is_root = who.uid == 0;
	DL_APPEND(peers, p);
	if (loop_add(&p->source, EPOLLIN) < 0)
		peer_close(p);
}

int control_open(int listen_fd)
{
	listener = (struct source){listen_fd, control_accept};
	egress.tell_front = control_tell_front;
	return loop_add(&listener, EPOLLIN);
}

static bool has_root(void)
{
	const struct peer *p;
	DL_FOREACH (peers, p)
		if (p->is_root)
			return true;
	return false;
}

void control_check_end(void)
{
	bool drained =
		egress.connection_count == 0 || egress.now_ms - egress.retired_ms > RETIRE_MS;
	static bool had_root;
	had_root = had_root || has_root();
	if (egress.retired && drained)
		_exit(0);
	if (had_root && !has_root() && count_clients() == 0)
		_exit(0);
}
