#include "box/port/port_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"

struct port_link {
	struct sandbox *sandbox;
	uv_poll_t poll;
	int fd;
};

static void port_link_free(uv_handle_t *handle)
{
	struct port_link *l = handle->data;
	close(l->fd);
	free(l);
}

void port_link_close(struct sandbox *s)
{
	struct port_link *l = take_ptr(s->ports.link);
	if (l)
		uv_close((uv_handle_t *)&l->poll, port_link_free);
}

/* Returns whether it is what was asked for: a TCP socket that is neither connected nor listening.
 */
static bool is_fresh_socket(int fd)
{
	const struct {
		int option, expected;
	} facts[] = {{SO_TYPE, SOCK_STREAM}, {SO_PROTOCOL, IPPROTO_TCP}, {SO_ACCEPTCONN, 0}};
	struct sockaddr_storage peer;
	socklen_t peer_len = sizeof peer;
	for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
		int value = -1;
		socklen_t len = sizeof value;
		if (getsockopt(fd, SOL_SOCKET, facts[i].option, &value, &len) < 0 ||
			value != facts[i].expected)
			return false;
	}
	return getpeername(fd, (struct sockaddr *)&peer, &peer_len) < 0 && errno == ENOTCONN;
}

/* Takes the descriptors of a message; returns the only one, or -EPROTO. */
static int take_descriptor(struct msghdr *message)
{
	int found = -EPROTO;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0);
			at += sizeof(int)) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
			if (found < 0)
				found = fd;
			else
				close(fd);
		}
	}
	return found;
}

/* Returns 1 with an answer in *answer, 0 when none has come, or -errno when none will. */
static int port_link_receive(const struct port_link *l, int *answer)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(4 * sizeof(int))];
	} control;
	char error;
	struct iovec part = {&error, sizeof error};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control};
	ssize_t n = recvmsg(l->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -ECONNRESET;
	*answer = take_descriptor(&message);
	if (*answer >= 0 && (error || !is_fresh_socket(*answer))) {
		close(*answer);
		*answer = -EPROTO;
	} else if (*answer < 0 && error > 0) {
		*answer = -error;
	}
	return 1;
}

static void port_link_ready(uv_poll_t *poll, int status, int events)
{
	const struct port_link *l = poll->data;
	struct sandbox *s = l->sandbox;
	int answer = -1, r = status < 0 ? -ECONNRESET : 1;
	(void)events;
	/* Whoever is told of an answer may close the link. */
	while (r > 0 && s->ports.link == l) {
		r = port_link_receive(l, &answer);
		if (r > 0)
			port_socket_came(s, answer);
	}
	if (r < 0)
		port_sockets_lost(s);
}

static int port_link_open(struct sandbox *s)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int n = snprintf(address.sun_path, sizeof address.sun_path, "%s/%s.sock",
		s->box->config.run_dir, s->id);
	if (n < 0 || (size_t)n >= sizeof address.sun_path)
		return -ENAMETOOLONG;
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return -errno;
	struct port_link *l = mem_new(sizeof *l);
	int r = uv_poll_init(s->box->loop, &l->poll, fd);
	if (r < 0) {
		free(l);
		return r;
	}
	l->sandbox = s;
	l->fd = take_fd(&fd);
	l->poll.data = l;
	uv_poll_start(&l->poll, UV_READABLE, port_link_ready);
	s->ports.link = l;
	return 0;
}

int port_link_ask(struct sandbox *s, unsigned version, unsigned count)
{
	autobuf frame = {0};
	int r = s->ports.link ? 0 : port_link_open(s);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < count; i++)
		frame_append(&frame, FRAME_SOCKET, 0, 0, version, NULL, 0);
	ssize_t n = send(s->ports.link->fd, frame.data, frame.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	return n == (ssize_t)frame.len ? 0 : n < 0 ? -errno : -EAGAIN;
}
