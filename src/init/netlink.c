/*
 * Sockets of route netlink, by which programs ask for the network's interfaces. Unread answers in
 * them are kernel memory that no cgroup is charged for, so a sandbox may have few of them, and the
 * count must be exact: each request for one comes here, and init makes it and puts it into the
 * process that asked. The sandbox's filter lets init do so by a number in an argument that the
 * system call does not have, and that nobody else knows.
 */
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"

#define SOCKETS_MAX   32
#define PROTOCOLS_MAX (64u << 10)

static struct source netlink_requests;
static uint64_t
	netlink_number; /* 0: the network is not the sandbox's own, and others count there */

/* Returns how many the network namespace has, whoever holds them, or -errno. */
static int netlink_count(void)
{
	autobuf text = {0};
	int r = fd_read_file_at(AT_FDCWD, "/proc/net/protocols", &text, PROTOCOLS_MAX);
	buf_append_char(&text, '\0');
	if (r < 0 || text.failed)
		return r < 0 ? r : -ENOMEM;
	/* "NETLINK  1096      3  …": the name, the size of one, how many there are. */
	const char *line = strstr(text.data, "\nNETLINK ");
	char *rest;
	if (!line)
		return -ENOENT;
	(void)strtol(line + strlen("\nNETLINK "), &rest, 10);
	return (int)strtol(rest, NULL, 10);
}

/* Returns 0 when the process has the socket, or -errno for it. */
static int netlink_give(uint64_t id, int type)
{
	int count = netlink_count();
	if (count < 0 || count >= SOCKETS_MAX)
		return -ENOBUFS;
	autoclose int fd =
		(int)syscall(SYS_socket, AF_NETLINK, type, NETLINK_ROUTE, netlink_number);
	if (fd < 0)
		return -errno;
	struct seccomp_notif_addfd give = {
		.id = id,
		.flags = SECCOMP_ADDFD_FLAG_SEND,
		.srcfd = (uint32_t)fd,
		.newfd_flags = type & SOCK_CLOEXEC ? O_CLOEXEC : 0,
	};
	return ioctl(INIT_NETLINK_FD, SECCOMP_IOCTL_NOTIF_ADDFD, &give) < 0 ? -errno : 0;
}

static void netlink_asked(struct source *s, uint32_t events)
{
	/* Zeroed, and with room for what later kernels add. */
	union {
		struct seccomp_notif notif;
		char room[512];
	} asked = {.room = {0}};
	(void)events;
	if (ioctl(s->fd, SECCOMP_IOCTL_NOTIF_RECV, &asked.notif) < 0)
		return; /* who asked is gone */
	union {
		struct seccomp_notif_resp resp;
		char room[512];
	} answer = {.room = {0}};
	answer.resp.id = asked.notif.id;
	if (netlink_number == 0) {
		answer.resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	} else {
		int r = netlink_give(asked.notif.id, (int)asked.notif.data.args[1]);
		if (r == 0)
			return;
		answer.resp.error = r;
	}
	(void)ioctl(s->fd, SECCOMP_IOCTL_NOTIF_SEND, &answer.resp);
}

void netlink_open(char *const *environment)
{
	static const char name[] = "NETLINK=";
	if (environment[0] && strncmp(environment[0], name, sizeof name - 1) == 0) {
		netlink_number = strtoull(environment[0] + sizeof name - 1, NULL, 16);
		memset(environment[0], 0, strlen(environment[0]));
	}
	netlink_requests.fd = INIT_NETLINK_FD;
	netlink_requests.ready = netlink_asked;
	(void)loop_watch(&netlink_requests, EPOLLIN);
}
