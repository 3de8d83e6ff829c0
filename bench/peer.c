/*
 * Both ends of what bench/network.mjs measures, in C so that they cost little:
 *
 *     bunker-peer serve PORT             HTTP on PORT, one byte to whoever connects on PORT+1
 *     bunker-peer connect HOST PORT N    connects and reads one byte, N times
 *     bunker-peer get HOST PORT NAME PATH N
 *                                        the same with an HTTP request whose Host is NAME
 *
 * GET /BYTES answers with so many, and the connection is kept unless the request says otherwise,
 * or unless the answer is long. The clients print the microseconds of each turn.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define PIECE     (256u * 1024)
#define SMALL_MAX 65536 /* answered without a process of its own */
#define FDS_MAX   64

static _Noreturn void peer_die(const char *what)
{
	perror(what);
	exit(1);
}

static struct sockaddr_in peer_address(const char *host, const char *port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};
	if (inet_pton(AF_INET, host, &a.sin_addr) != 1)
		peer_die(host);
	return a;
}

/* ---- the server ---- */

static int peer_listen(unsigned port)
{
	const struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 512) < 0)
		peer_die("listen");
	return fd;
}

static void peer_send(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
		if (n <= 0)
			return;
		bytes += n;
		len -= (size_t)n;
	}
}

static void peer_send_zeros(int fd, uint64_t count)
{
	static const char zeros[PIECE];
	for (uint64_t n; count > 0; count -= n) {
		n = count < sizeof zeros ? count : sizeof zeros;
		peer_send(fd, zeros, (size_t)n);
	}
}

/* Returns whether the connection is kept. */
static bool peer_answer(int fd)
{
	char head[4096], answer[SMALL_MAX + 256] = "";
	unsigned long long count = 0;
	ssize_t n = recv(fd, head, sizeof head - 1, 0);
	head[n > 0 ? n : 0] = '\0';
	if (sscanf(head, "GET /%llu", &count) != 1)
		return false;
	bool kept = count <= SMALL_MAX && !strstr(head, "Connection: close");
	int len =
		snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Length: %llu\r\n%s\r\n",
			count, kept ? "" : "Connection: close\r\n");
	if (count <= SMALL_MAX) {
		peer_send(fd, answer, (size_t)len + count);
	} else if (fork() == 0) {
		peer_send(fd, answer, (size_t)len);
		peer_send_zeros(fd, count);
		_exit(0);
	}
	return kept;
}

static int peer_accept(int listener)
{
	const int on = 1;
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	return fd;
}

/* The two listeners, then connections. */
static _Noreturn void peer_serve(unsigned port)
{
	struct pollfd fds[FDS_MAX] = {
		{peer_listen(port), POLLIN, 0}, {peer_listen(port + 1), POLLIN, 0}};
	nfds_t count = 2;
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		poll(fds, count, -1);
		for (nfds_t i = count; i-- > 2;)
			if (fds[i].revents && !peer_answer(fds[i].fd)) {
				close(fds[i].fd);
				fds[i] = fds[--count];
			}
		int fd = fds[0].revents && count < FDS_MAX ? peer_accept(fds[0].fd) : -1;
		if (fd >= 0)
			fds[count++] = (struct pollfd){fd, POLLIN, 0};
		fd = fds[1].revents ? peer_accept(fds[1].fd) : -1;
		if (fd >= 0) {
			peer_send(fd, "x", 1);
			close(fd);
		}
	}
}

/* ---- the clients ---- */

/* Connects, sends what there is to send, and reads to the end. Returns the microseconds. */
static int64_t peer_measure(const struct sockaddr_in *to, const char *request)
{
	static char in[PIECE];
	int64_t began = clock_monotonic_us();
	ssize_t n, all = 0;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof *to) < 0)
		peer_die("connect");
	peer_send(fd, request, strlen(request));
	while ((n = recv(fd, in, sizeof in, 0)) > 0)
		all += n;
	if (n < 0 || all == 0)
		peer_die("recv");
	if (request[0] && strncmp(in, "HTTP/1.1 200", all < (ssize_t)PIECE ? 12 : 0) != 0)
		peer_die("no 200");
	close(fd);
	return clock_monotonic_us() - began;
}

static void peer_repeat(const struct sockaddr_in *to, const char *request, const char *count)
{
	for (unsigned long i = strtoul(count, NULL, 10); i > 0; i--)
		printf("%lld\n", (long long)peer_measure(to, request));
}

int main(int argc, char **argv)
{
	char request[1024];
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		peer_serve((unsigned)strtoul(argv[2], NULL, 10));
	if (argc == 5 && strcmp(argv[1], "connect") == 0) {
		struct sockaddr_in to = peer_address(argv[2], argv[3]);
		peer_repeat(&to, "", argv[4]);
		return 0;
	}
	if (argc == 7 && strcmp(argv[1], "get") == 0) {
		struct sockaddr_in to = peer_address(argv[2], argv[3]);
		snprintf(request, sizeof request,
			"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", argv[5],
			argv[4]);
		peer_repeat(&to, request, argv[6]);
		return 0;
	}
	fputs("usage: bunker-peer serve|connect|get ...\n", stderr);
	return 2;
}
