/* bunker-egress: started, found again, and told what it needs. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "netns/daemon.h"

#define PARTING_MS 2000

static const char version[] = BUNKER_VERSION;

static struct daemon egress_daemon(const struct netns *n)
{
	struct daemon s = {
		.name = EGRESS_NAME, .cgroup = EGRESS_CGROUP, .uid = n->config.egress_uid};
	snprintf(s.socket_path, sizeof s.socket_path, "%s/run/" EGRESS_SOCKET, n->config.data);
	return s;
}

int netns_start_egress(struct netns *n)
{
	const struct daemon s = egress_daemon(n);
	int r = netns_wall_egress(n);
	if (r < 0)
		return r;
	autoclose int fd = daemon_start(n, &s);
	if (fd >= 0 && send(fd, &n->config.egress, sizeof n->config.egress, MSG_NOSIGNAL) < 0)
		return -errno;
	return take_fd(&fd);
}

static int egress_greet(int fd, struct egress_hello *answer)
{
	struct egress_hello hello = {.head = {.op = EGRESS_HELLO, .sequence = EGRESS_PROTOCOL}};
	snprintf(hello.version, sizeof hello.version, "%s", version);
	if (send(fd, &hello, sizeof hello, MSG_NOSIGNAL) < 0)
		return -errno;
	ssize_t n = recv(fd, answer, sizeof *answer, 0);
	if (n < 0)
		return -errno;
	bool same = n == (ssize_t)sizeof *answer && answer->head.op == EGRESS_HELLO &&
		    answer->head.sequence == EGRESS_PROTOCOL &&
		    memcmp(answer->version, hello.version, sizeof hello.version) == 0;
	return same ? 0 : -EPROTO;
}

static int egress_read_held(int fd, void (*held)(const char *id, uint64_t inode))
{
	for (;;) {
		struct egress_open what;
		ssize_t n = recv(fd, &what, sizeof what, 0);
		if (n != (ssize_t)sizeof what || what.head.op != EGRESS_HELD)
			return -EPROTO;
		if (!what.head.id[0])
			return 0;
		if (what.head.id[ID_LEN] == '\0' && id_is_valid(what.head.id))
			held(what.head.id, what.namespace);
	}
}

int netns_adopt_egress(struct netns *n, void (*held)(const char *id, uint64_t inode))
{
	const struct daemon s = egress_daemon(n);
	struct egress_hello answer;
	autoclose int fd = daemon_connect(&s);
	if (fd < 0)
		return netns_start_egress(n);
	int r = egress_greet(fd, &answer);
	if (r == 0 && egress_read_held(fd, held) == 0 &&
		send(fd, &n->config.egress, sizeof n->config.egress, MSG_NOSIGNAL) > 0)
		return take_fd(&fd);
	const struct egress_head retire = {.op = EGRESS_RETIRE};
	log_info("bunker-egress is of another version; it ends with its connections");
	send(fd, &retire, sizeof retire, MSG_NOSIGNAL);
	return netns_start_egress(n);
}

int netns_send_open(int fd, const char *id, uint64_t inode, const struct netns_sockets *s)
{
	const int fds[] = {s->tcp, s->udp, s->link};
	struct egress_open open = {.head = {.op = EGRESS_OPEN}, .namespace = inode};
	memcpy(open.head.id, id, ID_LEN);
	return fd_send_many(fd, &open, sizeof open, fds, ARRAY_LEN(fds), 0);
}

/* Returns whether it goes on with its sandboxes; one that cannot be reached does not. */
static bool egress_goes_on(int fd)
{
	struct egress_head part = {.op = EGRESS_PART};
	struct pollfd p = {.fd = fd};
	if (fd < 0 || send(fd, &part, sizeof part, MSG_NOSIGNAL) < 0)
		return false;
	ssize_t n = recv(fd, &part, sizeof part, 0);
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return false;
	return n != (ssize_t)sizeof part || part.sequence > 0 || poll(&p, 1, PARTING_MS) <= 0;
}

bool netns_part_from_egress(struct netns *n, int fd)
{
	const struct daemon s = egress_daemon(n);
	if (egress_goes_on(fd))
		return false;
	daemon_remove(n, &s);
	return true;
}
