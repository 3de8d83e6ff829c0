#include "server/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/cleanup.h"

static bool listen_loopback(const struct addrinfo *info)
{
	struct sockaddr_storage address = {0};
	struct address_port a;
	memcpy(&address, info->ai_addr, info->ai_addrlen);
	return address_from_socket(&address, &a) && address_is_loopback(&a.address);
}

static int listen_split(const char *address, char host[64], char port[16], struct error *e)
{
	const char *colon = strrchr(address, ':');
	size_t len = colon ? (size_t)(colon - address) : 0;
	if (len >= 2 && address[0] == '[' && address[len - 1] == ']') {
		address++;
		len -= 2;
	}
	char *end = NULL;
	unsigned long number = colon ? strtoul(colon + 1, &end, 10) : 0;
	if (!colon || len == 0 || len >= 64 || colon[1] < '0' || colon[1] > '9' || *end ||
		number > 65535)
		return error_set(e, ERROR_INVALID_REQUEST,
			"'%s' is no address; write HOST:PORT, such as 127.0.0.1:2468", address);
	memcpy(host, address, len);
	host[len] = '\0';
	snprintf(port, 16, "%lu", number);
	return 0;
}

static int bind_one(const struct addrinfo *info)
{
	int one = 1;
	autoclose int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, info->ai_addr, info->ai_addrlen) < 0 || listen(fd, 1024) < 0)
		return -errno;
	return take_fd(&fd);
}

static void bound_name(int fd, char name[LISTEN_NAME_SIZE])
{
	struct sockaddr_storage address = {0};
	socklen_t len = sizeof address;
	char host[64] = "", port[16] = "";
	getsockname(fd, (struct sockaddr *)&address, &len);
	getnameinfo((struct sockaddr *)&address, len, host, sizeof host, port, sizeof port,
		NI_NUMERICHOST | NI_NUMERICSERV);
	bool v6 = address.ss_family == AF_INET6;
	snprintf(name, LISTEN_NAME_SIZE, "%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
}

int listen_open(
	const char *address, char name[LISTEN_NAME_SIZE], bool *is_loopback, struct error *e)
{
	char host[64], port[16];
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *info;
	if (listen_split(address, host, port, e) < 0)
		return -1;
	int r = getaddrinfo(host, port, &hints, &info);
	if (r != 0)
		return error_set(e, ERROR_INVALID_REQUEST, "cannot listen on '%s': %s", address,
			gai_strerror(r));
	int fd = bind_one(info);
	*is_loopback = listen_loopback(info);
	freeaddrinfo(info);
	if (fd < 0)
		return error_set_errno(e, fd, "cannot listen on %s", address);
	bound_name(fd, name);
	return fd;
}
