/*
 * A sandbox's network namespace, entered and left. It is found by its cgroup: the first process
 * there is init. The host's own namespace, which a builder may share, is never touched.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "netns/netns.h"

#define BACKLOG    512
#define NAMES_PORT 53
#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78
#endif

/*
 * Our sockets are bound to an address that nobody has: no port is taken from the sandbox but 53. It
 * is an IPv4 address in IPv6 form, 192.0.2.53, because one bound to an IPv6 address takes nothing
 * that comes by IPv4.
 */
static const struct in6_addr names_address = {
	{{[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 53}}};

/* ---- finding it ---- */

/* Where the processor's controller is on v2, init is in a cgroup of its own (warden/cgroup.c). */
static pid_t first_process(int cgroup_fd)
{
	pid_t pid = (pid_t)fd_read_number_at(cgroup_fd, "init/cgroup.procs", "");
	return pid > 0 ? pid : (pid_t)fd_read_number_at(cgroup_fd, "cgroup.procs", "");
}

static int open_namespace(pid_t pid, uint64_t *inode)
{
	char path[64];
	struct stat st, own;
	snprintf(path, sizeof path, "/proc/%d/ns/net", pid);
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || stat("/proc/self/ns/net", &own) < 0)
		return -errno;
	if (st.st_ino == own.st_ino && st.st_dev == own.st_dev)
		return -EPERM; /* the host's */
	*inode = st.st_ino;
	return take_fd(&fd);
}

int netns_find(const struct netns *n, const char *id, uint64_t *inode)
{
	autoclose int cgroup =
		openat(n->config.cgroup_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (cgroup < 0)
		return -errno;
	pid_t pid = first_process(cgroup);
	if (pid <= 0)
		return -ESRCH;
	autoclose int fd = open_namespace(pid, inode);
	/* A process that took over the number is in another cgroup. */
	return fd >= 0 && first_process(cgroup) != pid ? -ESRCH : take_fd(&fd);
}

/* ---- in it ---- */

static int open_socket(int type)
{
	const int on = 1, off = 0;
	const struct sockaddr_in6 address = {.sin6_family = AF_INET6,
		.sin6_port = htons(NAMES_PORT),
		.sin6_addr = names_address};
	autoclose int fd = socket(AF_INET6, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0 ||
		setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof on) < 0)
		return -errno;
	/* What is accepted has the port of its destination, which a server inside may want. */
	if (type == SOCK_STREAM && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0)
		return -errno;
	if (type == SOCK_DGRAM &&
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on) < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, sizeof address) < 0)
		return -errno;
	if (type == SOCK_STREAM && listen(fd, BACKLOG) < 0)
		return -errno;
	return take_fd(&fd);
}

static int open_sockets(struct netns_sockets *s)
{
	s->tcp = open_socket(SOCK_STREAM);
	s->udp = s->tcp < 0 ? -1 : open_socket(SOCK_DGRAM);
	return s->tcp < 0 ? s->tcp : s->udp < 0 ? s->udp : 0;
}

static int set_up_inside(struct netns_sockets *s)
{
	s->step = NETWORK_STEP_ROUTES;
	int r = netns_add_routes();
	if (r < 0)
		return r;
	s->step = NETWORK_STEP_SOCKETS;
	return open_sockets(s);
}

static int open_own(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A process that stays in a sandbox's namespace must not go on. */
static void return_home(int own_fd)
{
	if (setns(own_fd, CLONE_NEWNET) < 0) {
		log_error("cannot return from a sandbox's network namespace");
		_exit(1);
	}
}

static int steer_to_sockets(int namespace_fd, struct netns_sockets *s)
{
	s->step = NETWORK_STEP_PROGRAM;
	autoclose int program = netns_load_program(s->tcp, s->udp);
	if (program < 0)
		return program;
	s->step = NETWORK_STEP_ATTACH;
	s->link = netns_attach_program(program, namespace_fd);
	return s->link < 0 ? s->link : 0;
}

int netns_connect(int namespace_fd, struct netns_sockets *ret)
{
	*ret = (struct netns_sockets){-1, -1, -1, NETWORK_STEP_ENTER};
	autoclose int own = open_own();
	if (own < 0 || setns(namespace_fd, CLONE_NEWNET) < 0)
		return own < 0 ? own : -errno;
	int r = set_up_inside(ret);
	return_home(own);
	if (r == 0)
		r = steer_to_sockets(namespace_fd, ret);
	if (r < 0)
		netns_close_sockets(ret);
	return r;
}

void netns_close_sockets(struct netns_sockets *s)
{
	int *const fds[] = {&s->tcp, &s->udp, &s->link};
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		if (*fds[i] >= 0)
			close(take_fd(fds[i]));
}

int netns_disconnect(int namespace_fd)
{
	autoclose int own = open_own();
	if (own < 0 || setns(namespace_fd, CLONE_NEWNET) < 0)
		return own < 0 ? own : -errno;
	int r = netns_drop_routes();
	return_home(own);
	return r;
}

/* ---- trying it ---- */

static int probe_here(enum network_step *step)
{
	struct netns_sockets s = {-1, -1, -1, NETWORK_STEP_ENTER};
	autoclose int own = open_own();
	*step = NETWORK_STEP_ENTER;
	if (own < 0 || unshare(CLONE_NEWNET) < 0)
		return own < 0 ? own : -errno;
	autoclose int made = open_own();
	return_home(own);
	int r = made < 0 ? made : netns_connect(made, &s);
	*step = r < 0 ? s.step : NETWORK_STEP_NONE;
	if (r == 0)
		netns_close_sockets(&s);
	return r;
}

/* In a child: a thread of the caller could be in the wrong namespace meanwhile. */
int netns_probe(enum network_step *step)
{
	int status = 0;
	pid_t pid = fork();
	*step = NETWORK_STEP_ENTER;
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		int r = probe_here(step);
		_exit(r < 0 ? (int)*step : 0);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	*step = WIFEXITED(status) ? (enum network_step)WEXITSTATUS(status) : NETWORK_STEP_PROGRAM;
	return *step == NETWORK_STEP_NONE ? 0 : -EOPNOTSUPP;
}
