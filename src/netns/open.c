/* The start and the end of bunker-wire, in the process that starts it. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "netns/netns.h"

#define FIRST_FD   100
#define RESTART_MS 100

/* Closes all other descriptors, so that port and lock are free when the warden is gone. */
static void keep_three(struct netns *n)
{
	int *const held[] = {&n->front_pair[1], &n->config.cgroup_fd, &n->config.memory_fd};
	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		if (*held[i] >= 0)
			*held[i] = dup2(*held[i], FIRST_FD + (int)i);
	close_range(3, FIRST_FD - 1, 0);
	close_range(FIRST_FD + ARRAY_LEN(held), ~0u, 0);
	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		if (*held[i] < 0)
			close(FIRST_FD + (int)i);
}

static pid_t netns_fork(struct netns *n)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid < 0 ? -errno : pid;
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	keep_three(n);
	if (n->has_died) { /* one that dies at once must not take a processor */
		struct pollfd p = {.fd = n->front_pair[1]};
		poll(&p, 1, RESTART_MS);
	}
	netns_main(n);
}

int netns_start(struct netns *n, const struct netns_config *config, struct error *e)
{
	*n = (struct netns){.config = *config, .log_pipe = {-1, -1}};
	n->config.egress.head = (struct egress_head){.op = EGRESS_CONFIGURE};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, n->front_pair) < 0)
		return error_set_errno(e, errno, "cannot make the socket of bunker-wire");
	n->pid = netns_fork(n);
	return n->pid < 0 ? error_set_errno(e, n->pid, "cannot start bunker-wire") : 0;
}

void netns_child_ended(struct netns *n, pid_t pid)
{
	if (pid != n->pid)
		return;
	log_error("bunker-wire died; starting it again");
	n->has_died = true;
	n->pid = netns_fork(n);
}

void netns_leave(struct netns *n)
{
	close(n->front_pair[0]);
	close(n->front_pair[1]);
	while (waitpid(n->pid, NULL, 0) < 0 && errno == EINTR)
		;
}
