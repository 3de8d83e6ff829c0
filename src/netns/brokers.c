/*
 * The brokers: one for each tenant whose sandboxes have rules, known by an id that the front has
 * drawn. A broker is started when the front first asks for it, connected with egress by a socket
 * pair, and started again when it dies; it says so when it ends for want of sandboxes. What runs is
 * found again by cgroups, each owned by its broker's uid: no two brokers have the same one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "netns/daemon.h"
#include "wire/broker.h"

#define BROKER_CGROUP_PREFIX "broker-"
#define RESTART_US           (200 * 1000) /* after a death; twice as much after each one more, up to */
#define RESTART_MAX_US       (10 * 1000 * 1000)
#define LIVED_US             (10 * 1000 * 1000) /* after which deaths are counted anew */
#define DEATHS_MAX           6

struct broker {
	char id[ID_SIZE];
	int fd; /* -1: it has died, and is to be started again */
	bool has_parted;
	unsigned deaths;
	int64_t started_us;
	struct daemon daemon;
};

static struct broker brokers[NETNS_BROKERS_MAX];
static size_t broker_count;

/* ---- the table ---- */

static struct broker *broker_find(const char *id)
{
	for (size_t i = 0; i < broker_count; i++)
		if (memcmp(brokers[i].id, id, ID_SIZE) == 0)
			return &brokers[i];
	return NULL;
}

static bool broker_uid_is_used(uid_t uid)
{
	for (size_t i = 0; i < broker_count; i++)
		if (brokers[i].daemon.uid == uid)
			return true;
	return false;
}

/* There are as many uids as brokers. */
static uid_t broker_choose_uid(const struct netns *n)
{
	uid_t uid = n->config.broker_uid;
	while (broker_uid_is_used(uid))
		uid--;
	return uid;
}

static struct broker *broker_add(const struct netns *n, const char *id, uid_t uid)
{
	if (broker_count == NETNS_BROKERS_MAX)
		return NULL;
	struct broker *b = &brokers[broker_count++];
	*b = (struct broker){.fd = -1,
		.daemon = {.name = BROKER_NAME, .uid = uid, .argument = n->config.trust_file}};
	memcpy(b->id, id, ID_LEN);
	snprintf(b->daemon.cgroup, sizeof b->daemon.cgroup, BROKER_CGROUP_PREFIX "%s", id);
	snprintf(b->daemon.socket_path, sizeof b->daemon.socket_path,
		"%s/run/" BROKER_SOCKET_PREFIX "%s.sock", n->config.data, id);
	return b;
}

static void broker_drop(struct broker *b)
{
	if (b->fd >= 0)
		close(b->fd);
	*b = brokers[--broker_count];
}

/* ---- one of them ---- */

/* Connects it with egress. What cannot be sent shows as a death. */
static int broker_pair(const struct broker *b, int egress_fd)
{
	struct egress_head to_egress = {.op = EGRESS_BROKER};
	const struct broker_head to_broker = {.op = BROKER_EGRESS};
	int pair[2];
	if (egress_fd < 0 || b->fd < 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	memcpy(to_egress.id, b->id, ID_LEN);
	int r = fd_send(egress_fd, &to_egress, sizeof to_egress, pair[0], 0);
	if (r == 0)
		r = fd_send(b->fd, &to_broker, sizeof to_broker, pair[1], 0);
	close(pair[0]);
	close(pair[1]);
	return r;
}

static int broker_start(const struct netns *n, struct broker *b, int egress_fd)
{
	b->started_us = clock_monotonic_us();
	b->fd = daemon_start(n, &b->daemon);
	if (b->fd < 0) {
		log_error("cannot start bunker-broker", "error", strerror(-b->fd));
		return b->fd;
	}
	return broker_pair(b, egress_fd);
}

static int64_t broker_rest_us(const struct broker *b)
{
	int64_t rest = (int64_t)RESTART_US << b->deaths;
	return rest < RESTART_MAX_US ? rest : RESTART_MAX_US;
}

static void broker_died(struct broker *b)
{
	bool lived = clock_monotonic_us() - b->started_us > LIVED_US;
	log_error("bunker-broker died; starting it again", "broker", b->id);
	close(take_fd(&b->fd));
	b->deaths = lived ? 0 : b->deaths < DEATHS_MAX ? b->deaths + 1 : DEATHS_MAX;
}

/* Reads what it says. Returns false when it is gone. */
static bool broker_hear(struct broker *b)
{
	struct broker_hello message;
	ssize_t size = recv(b->fd, &message, sizeof message, MSG_DONTWAIT);
	if (size >= (ssize_t)sizeof message.head && message.head.op == BROKER_PARTED)
		b->has_parted = true;
	return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
}

/* ---- all of them ---- */

int netns_want_broker(const struct netns *n, const char *id, int egress_fd)
{
	struct broker *b = broker_find(id);
	if (b && b->fd >= 0)
		return 0;
	if (!b)
		b = broker_add(n, id, broker_choose_uid(n));
	if (!b)
		return -EMFILE;
	return broker_start(n, b, egress_fd);
}

void netns_pair_brokers(int egress_fd)
{
	for (size_t i = 0; i < broker_count; i++)
		broker_pair(&brokers[i], egress_fd);
}

size_t netns_poll_brokers(struct pollfd polls[NETNS_BROKERS_MAX], int *timeout_ms)
{
	for (size_t i = 0; i < broker_count; i++) {
		polls[i] = (struct pollfd){.fd = brokers[i].fd, .events = POLLIN};
		if (brokers[i].fd < 0)
			*timeout_ms = RESTART_US / 1000;
	}
	return broker_count;
}

/* From the last one on: the one that takes a dropped one's place was looked at already. */
void netns_turn_brokers(const struct netns *n, const struct pollfd *polls, int egress_fd)
{
	for (size_t i = broker_count; i-- > 0;) {
		struct broker *b = &brokers[i];
		bool is_here = b->fd < 0 || !polls[i].revents || broker_hear(b);
		if (b->has_parted) {
			daemon_remove(n, &b->daemon);
			broker_drop(b);
			continue;
		}
		if (!is_here)
			broker_died(b);
		if (b->fd < 0 && clock_monotonic_us() - b->started_us > broker_rest_us(b))
			broker_start(n, b, egress_fd);
	}
}

/* ---- those of an earlier bunker-wire ---- */

/* Returns a connection to one of our version. */
static int broker_greet(const struct broker *b, bool *has_egress)
{
	struct broker_hello answer,
		hello = {.head = {.op = BROKER_HELLO, .sequence = BROKER_PROTOCOL}};
	autoclose int fd = daemon_connect(&b->daemon);
	if (fd < 0)
		return fd;
	snprintf(hello.version, sizeof hello.version, "%s", BUNKER_VERSION);
	if (send(fd, &hello, sizeof hello, MSG_NOSIGNAL) < 0)
		return -errno;
	if (recv(fd, &answer, sizeof answer, 0) != (ssize_t)sizeof answer ||
		answer.head.op != BROKER_HELLO || answer.head.sequence != BROKER_PROTOCOL ||
		memcmp(answer.version, hello.version, sizeof hello.version) != 0)
		return -EPROTO;
	*has_egress = answer.has_egress != 0;
	return take_fd(&fd);
}

/* One of another version goes on for the egress that it has, and ends with it; its name is free. */
static void broker_adopt(const struct netns *n, const char *id, uid_t uid, int egress_fd)
{
	bool has_egress = false;
	struct broker *b = broker_find(id) ? NULL : broker_add(n, id, uid);
	if (!b)
		return;
	b->started_us = clock_monotonic_us();
	b->fd = broker_greet(b, &has_egress);
	if (b->fd >= 0) {
		if (!has_egress)
			broker_pair(b, egress_fd);
		return;
	}
	if (b->fd == -EPROTO)
		unlink(b->daemon.socket_path);
	else
		daemon_remove(n, &b->daemon);
	b->fd = -1;
	broker_drop(b);
}

void netns_adopt_brokers(const struct netns *n, int egress_fd)
{
	static const char prefix[] = BROKER_CGROUP_PREFIX;
	autodir DIR *dir = fd_open_dir_at(n->config.cgroup_fd, ".");
	struct dirent *entry;
	struct stat st;
	while (dir && (entry = readdir(dir)) != NULL) {
		const char *id = entry->d_name + strlen(prefix);
		if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && id_is_valid(id) &&
			fstatat(n->config.cgroup_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			broker_adopt(n, id, st.st_uid, egress_fd);
	}
}

void netns_part_from_brokers(const struct netns *n)
{
	const struct broker_head part = {.op = BROKER_PART};
	for (size_t i = 0; i < broker_count; i++)
		if (brokers[i].fd >= 0)
			send(brokers[i].fd, &part, sizeof part, MSG_NOSIGNAL | MSG_DONTWAIT);
	for (size_t i = 0; i < broker_count; i++)
		daemon_remove(n, &brokers[i].daemon);
}
