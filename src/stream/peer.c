#include "stream/peer.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/mem.h"

#define MESSAGES_PER_TURN 64

static struct source listener = {.fd = -1};
static const struct peer_handlers *handlers;
static struct peer *peers;

/* ---- sending ---- */

void peer_close(struct peer *p)
{
	if (p->source.fd < 0)
		return;
	loop_remove(&p->source);
	DL_DELETE(peers, p);
	handlers->closed(p);
	loop_free_later(p);
}

int peer_try_send(struct peer *p, const void *message, size_t len, const int *fds, size_t count)
{
	return p->source.fd < 0
		       ? -EPIPE
		       : fd_send_many(p->source.fd, message, len, fds, count, MSG_DONTWAIT);
}

void peer_send(struct peer *p, const void *message, size_t len)
{
	if (peer_try_send(p, message, len, NULL, 0) < 0)
		peer_close(p);
}

bool peers_send(enum peer_kind kind, const void *message, size_t len)
{
	struct peer *p, *next;
	bool sent = false;
	DL_FOREACH_SAFE (peers, p, next) {
		if (p->kind != kind)
			continue;
		if (send(p->source.fd, message, len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			sent = true;
		else if (errno != EAGAIN && errno != EINTR)
			peer_close(p);
	}
	return sent;
}

bool peers_have(enum peer_kind kind)
{
	const struct peer *p;
	DL_FOREACH (peers, p)
		if (p->kind == kind)
			return true;
	return false;
}

struct peer *peers_find(const char *id)
{
	struct peer *p;
	DL_FOREACH (peers, p)
		if (p->kind == PEER_BESIDE && memcmp(p->id, id, ID_LEN) == 0)
			return p;
	return NULL;
}

/* ---- receiving ---- */

/* Returns the length, 0 at the end, negative when there is nothing now. */
static ssize_t peer_receive(struct peer *p, uint8_t *packet, int fds[PEER_FDS])
{
	union {
		char space[CMSG_SPACE(PEER_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	bool with_fds = p->kind != PEER_FRONT;
	struct iovec bytes = {.iov_base = packet, .iov_len = PEER_MESSAGE_MAX};
	struct msghdr message = {.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = with_fds ? control.space : NULL,
		.msg_controllen = with_fds ? sizeof control.space : 0};
	for (int i = 0; i < PEER_FDS; i++)
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
	static uint8_t packet[PEER_MESSAGE_MAX];
	int fds[PEER_FDS];
	ssize_t n = peer_receive(p, packet, fds);
	if (n == 0)
		peer_close(p);
	else if (n > 0)
		handlers->take(p, packet, (size_t)n, fds);
	for (int i = 0; i < PEER_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (n > 0)
		explicit_bzero(packet, (size_t)n); /* the front brings secrets */
	return n > 0 && p->source.fd >= 0;
}

static void peer_read_all(struct peer *p)
{
	for (int i = 0; i < MESSAGES_PER_TURN; i++)
		if (!peer_read(p))
			return;
}

void peers_read_all_but(const struct peer *p)
{
	struct peer *other, *next;
	DL_FOREACH_SAFE (peers, other, next)
		if (other != p)
			peer_read_all(other);
}

static void peer_ready(struct source *s, uint32_t events)
{
	(void)events;
	peer_read_all((struct peer *)((char *)s - offsetof(struct peer, source)));
}

/* ---- beginning ---- */

static struct peer *peer_new(int fd, enum peer_kind kind)
{
	struct peer *p = mem_new(sizeof *p);
	p->source = (struct source){fd, peer_ready};
	p->kind = kind;
	if (loop_add(&p->source, EPOLLIN) < 0) {
		free(p);
		return NULL;
	}
	DL_APPEND(peers, p);
	return p;
}

struct peer *peer_add(int fd, const char *id)
{
	struct peer *p = peer_new(fd, PEER_BESIDE);
	if (p)
		memcpy(p->id, id, strnlen(id, ID_LEN));
	return p;
}

static void peers_accept(struct source *s, uint32_t events)
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
	struct peer *p = peer_new(fd, who.uid == 0 ? PEER_ROOT : PEER_FRONT);
	if (p)
		p->pid = who.pid;
}

int peers_listen(int listen_fd, const struct peer_handlers *by)
{
	handlers = by;
	listener = (struct source){listen_fd, peers_accept};
	return loop_add(&listener, EPOLLIN);
}

void peers_stop_listening(void)
{
	loop_remove(&listener);
}
