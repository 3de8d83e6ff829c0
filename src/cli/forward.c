/*
 * Each connection has a process of its own, which ends with it or with its parent: a slow one holds
 * up no other, and the library's calls may block.
 */
#include "cli/forward.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/job.h"
#include "client/transport.h"

#define CONNECTIONS_MAX 256 /* at once; the next ones wait in the backlog */
#define PIECE           (64u * 1024)

/* ---- one connection ---- */

/* Bytes of one direction: all that was read is written before more is read. */
struct flow {
	int from, to;
	bool ended; /* the end of `from` was passed on */
};

/* Passes one piece on. Returns false if the connection is over. */
static bool flow_pass(struct flow *f)
{
	char bytes[PIECE];
	ssize_t n = recv(f->from, bytes, sizeof bytes, 0);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (n == 0) {
		f->ended = true;
		return shutdown(f->to, SHUT_WR) == 0;
	}
	return client_transport_send(f->to, bytes, (size_t)n, 0) == 0;
}

/* Both ways, until both have ended. */
static void forward_pass(int here, int inside)
{
	struct flow out = {here, inside, false}, in = {inside, here, false};
	while (!out.ended || !in.ended) {
		struct pollfd fds[] = {
			{out.ended ? -1 : here, POLLIN, 0}, {in.ended ? -1 : inside, POLLIN, 0}};
		if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
			return;
		if ((fds[0].revents && !flow_pass(&out)) || (fds[1].revents && !flow_pass(&in)))
			return;
	}
}

static _Noreturn void forward_serve(
	struct bunker *b, const char *sandbox, int64_t port, int here, pid_t parent)
{
	struct bunker_error e;
	int inside;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	if (bunker_port_connect(b, sandbox, port, &inside, &e) < 0) {
		cli_report_error(&e);
		_exit(1);
	}
	forward_pass(here, inside);
	_exit(0);
}

/* ---- the listening socket ---- */

/* Splits "[ADDRESS:]PORT"; an IPv6 address stands in brackets. */
static int forward_parse(const char *where, char address[64], const char **port)
{
	const char *colon = strrchr(where, ':');
	size_t len = colon ? (size_t)(colon - where) : 0;
	*port = colon ? colon + 1 : where;
	if (!colon)
		snprintf(address, 64, "127.0.0.1");
	else if (len > 2 && where[0] == '[' && where[len - 1] == ']')
		snprintf(address, 64, "%.*s", (int)(len - 2), where + 1);
	else
		snprintf(address, 64, "%.*s", (int)len, where);
	char *end;
	long number = strtol(*port, &end, 10);
	if (**port >= '0' && **port <= '9' && !*end && number <= 65535 && address[0] && len < 64)
		return 0;
	cli_report("--forward takes [ADDRESS:]PORT, not \"%s\"", where);
	return JOB_MISUSED;
}

static int forward_listen(const char *where)
{
	const struct addrinfo wanted = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	char address[64];
	const char *port;
	const int on = 1;
	int r = forward_parse(where, address, &port);
	if (r < 0)
		return r;
	r = getaddrinfo(address, port, &wanted, &found);
	if (r != 0) {
		cli_report("cannot listen on %s: %s", where, gai_strerror(r));
		return JOB_MISUSED;
	}
	autoclose int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	r = fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) < 0 || listen(fd, 64) < 0;
	freeaddrinfo(found);
	if (r) {
		cli_report("cannot listen on %s: %s", where, strerror(errno));
		return JOB_SAID;
	}
	return take_fd(&fd);
}

static void forward_announce(int listener, int64_t port)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof name;
	char host[64] = "", service[16] = "";
	getsockname(listener, (struct sockaddr *)&name, &len);
	getnameinfo((struct sockaddr *)&name, len, host, sizeof host, service, sizeof service,
		NI_NUMERICHOST | NI_NUMERICSERV);
	printf(strchr(host, ':') ? "[%s]:%s -> %lld\n" : "%s:%s -> %lld\n", host, service,
		(long long)port);
	fflush(stdout);
}

/* ---- all connections ---- */

static volatile sig_atomic_t forward_ends;

static void forward_end(int number)
{
	(void)number;
	forward_ends = 1;
}

static void forward_wake(int number)
{
	(void)number;
}

/* Makes signals end a poll: no SA_RESTART. */
static void forward_catch_signals(void)
{
	const struct sigaction end = {.sa_handler = forward_end},
			       wake = {.sa_handler = forward_wake};
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGCHLD, &wake, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void forward_reap(unsigned *children)
{
	while (*children > 0 && waitpid(-1, NULL, WNOHANG) > 0)
		--*children;
}

static void forward_accept(
	struct bunker *b, const char *sandbox, int64_t port, int listener, unsigned *children)
{
	pid_t parent = getpid();
	autoclose int here = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (here < 0)
		return;
	pid_t pid = fork();
	if (pid == 0)
		forward_serve(b, sandbox, port, here, parent);
	if (pid < 0)
		cli_report("a connection was refused: %s", strerror(errno));
	else
		++*children;
}

int cli_forward_run(struct bunker *b, const char *sandbox, int64_t port, const char *where,
	struct bunker_error *e)
{
	unsigned children = 0;
	sigset_t blocked, open;
	struct bunker_port found;
	/* A sandbox that is not there is said now, not with the first connection. */
	if (bunker_port_get(b, sandbox, port, &found, e) < 0)
		return -1;
	bunker_port_finish(&found);
	autoclose int listener = forward_listen(where);
	if (listener < 0)
		return take_fd(&listener);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGCHLD);
	sigprocmask(SIG_BLOCK, &blocked, &open);
	forward_catch_signals();
	forward_announce(listener, port);
	while (!forward_ends) {
		struct pollfd p = {children < CONNECTIONS_MAX ? listener : -1, POLLIN, 0};
		int n = ppoll(&p, 1, NULL, &open);
		forward_reap(&children);
		if (n > 0)
			forward_accept(b, sandbox, port, listener, &children);
	}
	sigprocmask(SIG_SETMASK, &open, NULL);
	return 0;
}
