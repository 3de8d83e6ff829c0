/*
 * The loop of bunker-wire: requests of the front, and the ends of bunker-egress and bunker-brokers.
 * Which sandboxes have a network is kept in a table, so that an egress that is started again gets
 * sockets for all of them before it runs; entries of sandboxes that are gone are found out then.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "netns/netns.h"

#define RESTART_US    (200 * 1000) /* between two starts */
#define TABLE_MIN     64
#define RETRY_WAIT_MS 200

struct entry {
	char id[ID_SIZE];
	uint64_t inode; /* of its namespace */
};

static struct entry *table;
static size_t table_count, table_size;
static int egress_fd = -1;
static int64_t egress_started_us;
static enum network_step lacking; /* NETWORK_STEP_NONE: this host has everything */

/* ---- the table ---- */

static struct entry *table_find(const char *id)
{
	for (size_t i = 0; i < table_count; i++)
		if (memcmp(table[i].id, id, ID_SIZE) == 0)
			return &table[i];
	return NULL;
}

static void table_drop(struct entry *e)
{
	if (e)
		*e = table[--table_count];
}

static void table_purge(const struct netns *n)
{
	for (size_t i = table_count; i-- > 0;) {
		uint64_t inode = 0;
		int fd = netns_find(n, table[i].id, &inode);
		if (fd >= 0)
			close(fd);
		if (fd < 0 || inode != table[i].inode)
			table_drop(&table[i]);
	}
}

static void table_put(const char *id, uint64_t inode)
{
	struct entry *e = table_find(id);
	if (!e && table_count == table_size) {
		table_size = table_size ? table_size * 2 : TABLE_MIN;
		table = mem_resize(table, table_size, sizeof *table);
	}
	e = e ? e : &table[table_count++];
	*e = (struct entry){.inode = inode};
	memcpy(e->id, id, ID_LEN);
}

/* ---- egress ---- */

static int open_for(struct netns *n, const char *id, uint64_t known, enum network_step *step)
{
	struct netns_sockets s;
	uint64_t inode;
	*step = NETWORK_STEP_FIND;
	autoclose int fd = netns_find(n, id, &inode);
	if (fd < 0)
		return fd;
	if (inode == known)
		return 0;
	int r = netns_connect(fd, &s);
	*step = s.step;
	if (r < 0)
		return r;
	*step = NETWORK_STEP_HAND_OVER;
	r = netns_send_open(egress_fd, id, inode, &s);
	netns_close_sockets(&s);
	if (r == 0)
		table_put(id, inode);
	return r;
}

static void open_all_again(struct netns *n)
{
	enum network_step step;
	table_purge(n);
	for (size_t i = 0; i < table_count; i++) {
		int r = open_for(n, table[i].id, 0, &step);
		if (r < 0)
			log_error("a sandbox has lost its network", "sandbox", table[i].id, "step",
				network_step_name(step), "error", strerror(-r));
	}
}

static void egress_restart(struct netns *n)
{
	int64_t now = clock_monotonic_us();
	if (egress_fd >= 0) {
		log_error("bunker-egress died; starting it again");
		close(take_fd(&egress_fd));
	}
	if (now - egress_started_us < RESTART_US)
		return; /* the next turn tries */
	egress_started_us = now;
	egress_fd = netns_start_egress(n);
	if (egress_fd < 0) {
		log_error("cannot start bunker-egress", "error", strerror(-egress_fd));
		return;
	}
	open_all_again(n);
	netns_pair_brokers(egress_fd);
}

/* ---- requests ---- */

static void turn_on(struct netns *n, const struct network_request *q, struct network_reply *a)
{
	enum network_step step = lacking;
	const struct entry *e = table_find(q->id);
	int r = lacking != NETWORK_STEP_NONE ? -EOPNOTSUPP : egress_fd < 0 ? -EAGAIN : 0;
	if (r == 0)
		r = open_for(n, q->id, e ? e->inode : 0, &step);
	a->error = -r;
	a->step = r < 0 ? step : NETWORK_STEP_NONE;
}

static void turn_off(struct netns *n, const struct network_request *q, struct network_reply *a)
{
	uint64_t inode;
	autoclose int fd = netns_find(n, q->id, &inode);
	table_drop(table_find(q->id));
	if (fd >= 0)
		a->error = -netns_disconnect(fd);
	else if (fd != -ENOENT && fd != -ESRCH && fd != -EPERM)
		a->error = -fd;
	a->step = a->error ? NETWORK_STEP_ROUTES : NETWORK_STEP_NONE;
}

static void want_broker(struct netns *n, const struct network_request *q, struct network_reply *a)
{
	int r = lacking != NETWORK_STEP_NONE ? -EOPNOTSUPP : egress_fd < 0 ? -EAGAIN : 0;
	if (r == 0)
		r = netns_want_broker(n, q->id, egress_fd);
	a->error = -r;
	a->step = r < 0 ? NETWORK_STEP_BROKER : NETWORK_STEP_NONE;
}

static void netns_answer(struct netns *n, int fd, const struct network_request *q)
{
	struct network_reply a = {.op = q->op, .sequence = q->sequence, .epoch = q->epoch};
	static void (*const ops[NETWORK_OP_END])(
		struct netns * n, const struct network_request *q, struct network_reply *a) = {
		[NETWORK_ON] = turn_on, [NETWORK_OFF] = turn_off, [NETWORK_BROKER] = want_broker};
	bool names_one = q->id[ID_LEN] == '\0' && id_is_valid(q->id);
	if (q->op == NETWORK_HELLO) {
		a.step = lacking;
	} else if (q->op >= NETWORK_OP_END || !ops[q->op] || !names_one) {
		a.error = EINVAL;
		a.step = NETWORK_STEP_REQUEST;
	} else {
		memcpy(a.id, q->id, ID_SIZE);
		ops[q->op](n, q, &a);
	}
	if (a.error && a.error != EAGAIN)
		log_error("a network cannot be changed", "id", a.id, "step",
			network_step_name((enum network_step)a.step), "error", strerror(a.error));
	send(fd, &a, sizeof a, MSG_NOSIGNAL);
}

static void netns_end(struct netns *n)
{
	if (netns_part_from_egress(n, egress_fd))
		netns_part_from_brokers(n);
	_exit(0);
}

/* They write to a pipe: our own standard error must end with us. */
static void pass_on_log(const struct netns *n)
{
	char text[4096];
	ssize_t size = read(n->log_pipe[0], text, sizeof text);
	if (size > 0)
		fd_write_all(STDERR_FILENO, text, (size_t)size);
}

/* Without it there are no networks: what bunker-egress reads is hostile. */
static void raise_first_wall(struct netns *n)
{
	n->addresses_fd = netns_watch_addresses();
	int r = lacking == NETWORK_STEP_NONE ? netns_wall_egress(n) : 0;
	n->unwalled = r < 0 || lacking != NETWORK_STEP_NONE;
	if (r == 0)
		return;
	lacking = NETWORK_STEP_WALL;
	log_error(
		"address guard missing: sandboxes have no network but none", "error", strerror(-r));
}

static void raise_wall_again(const struct netns *n)
{
	netns_read_addresses(n->addresses_fd);
	int r = netns_wall_egress(n);
	if (r < 0)
		log_error("the address guard does not know a change of this host's addresses",
			"error", strerror(-r));
}

static void netns_serve(struct netns *n, int fd)
{
	for (;;) {
		struct network_request q;
		struct pollfd p[4 + NETNS_BROKERS_MAX] = {{.fd = fd, .events = POLLIN},
			{.fd = egress_fd}, {.fd = n->log_pipe[0], .events = POLLIN},
			{.fd = n->addresses_fd, .events = POLLIN}};
		int timeout_ms = egress_fd < 0 ? RETRY_WAIT_MS : -1;
		size_t brokers = netns_poll_brokers(p + 4, &timeout_ms);
		poll(p, 4 + brokers, timeout_ms);
		if (p[2].revents)
			pass_on_log(n);
		if (p[3].revents)
			raise_wall_again(n);
		if (egress_fd < 0 || p[1].revents)
			egress_restart(n);
		netns_turn_brokers(n, p + 4, egress_fd);
		if (!p[0].revents)
			continue;
		ssize_t size = recv(fd, &q, sizeof q, MSG_DONTWAIT);
		if (size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN))
			netns_end(n);
		if (size == (ssize_t)sizeof q)
			netns_answer(n, fd, &q);
	}
}

static void netns_say_started(const struct netns *n, int fd)
{
	const struct network_reply started = {.op = NETWORK_STARTED};
	if (n->has_died)
		send(fd, &started, sizeof started, MSG_NOSIGNAL);
}

void netns_main(struct netns *n)
{
	struct error e = {0};
	int fd = n->front_pair[1];
	log_set_process("wire");
	prctl(PR_SET_NAME, "bunker-wire", 0, 0, 0);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	netns_probe(&lacking);
	signal(SIGCHLD, SIG_IGN); /* nobody waits for what we start */
	if (pipe2(n->log_pipe, O_CLOEXEC) < 0 || netns_confine(&e) < 0) {
		log_error("cannot start", "error", e.code ? e.message : strerror(errno));
		_exit(1);
	}
	raise_first_wall(n);
	egress_started_us = clock_monotonic_us();
	egress_fd = netns_adopt_egress(n, table_put);
	if (egress_fd < 0)
		log_error("cannot start bunker-egress", "error", strerror(-egress_fd));
	netns_adopt_brokers(n, egress_fd);
	netns_say_started(n, fd);
	netns_serve(n, fd);
	_exit(1);
}
