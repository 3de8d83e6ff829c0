/*
 * What is said to us: root (bunker-wire) brings sockets and brokers, the front policies
 * (wire/egress.h), a broker what it carried (wire/broker.h).
 */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "egress/egress.h"
#include "stream/peer.h"
#include "wire/broker.h"

#define RETIRE_MS    (60 * 60 * 1000)
#define HELD_WAIT_MS 1000

/* ---- root's ---- */

/* Root waits for each of them: what its socket has no room for is sent when it has read some. */
static void tell_held(struct peer *p, const struct egress_open *held)
{
	struct pollfd room = {.fd = p->source.fd, .events = POLLOUT};
	if (p->source.fd >= 0)
		poll(&room, 1, HELD_WAIT_MS);
	peer_send(p, held, sizeof *held);
}

static void take_hello(struct peer *p)
{
	struct egress_hello hello = {.head = {.op = EGRESS_HELLO, .sequence = EGRESS_PROTOCOL}};
	memcpy(hello.version, BUNKER_VERSION, sizeof BUNKER_VERSION);
	peer_send(p, &hello, sizeof hello);
	for (const struct client *c = egress.clients; c; c = c->by_id.next) {
		struct egress_open held = {.head = {.op = EGRESS_HELD}, .namespace = c->namespace};
		memcpy(held.head.id, c->id, ID_SIZE);
		if (c->tcp.fd >= 0)
			tell_held(p, &held);
	}
	tell_held(p, &(struct egress_open){.head = {.op = EGRESS_HELD}});
}

static void take_config(const uint8_t *message, size_t len)
{
	struct egress_config config;
	if (len != sizeof config)
		return;
	memcpy(&config, message, sizeof config);
	if (config.resolver_count <= EGRESS_RESOLVERS_MAX &&
		config.public_count <= EGRESS_RANGES_MAX &&
		config.private_count <= EGRESS_RANGES_MAX)
		egress.config = config;
}

static void take_open(const uint8_t *message, size_t len, int fds[PEER_FDS])
{
	struct egress_open open;
	if (len != sizeof open || fds[PEER_FDS - 1] < 0 || egress.retired)
		return;
	memcpy(&open, message, sizeof open);
	if (!id_is_valid(open.head.id))
		return;
	client_open(&open, fds[0], fds[1], fds[2]);
	for (int i = 0; i < PEER_FDS; i++)
		fds[i] = -1;
}

static void take_broker(const struct egress_head *head, int fds[PEER_FDS])
{
	if (!id_is_valid(head->id) || fds[0] < 0)
		return;
	brokered_open(head->id, fds[0]);
	fds[0] = -1;
}

static void control_retire(void)
{
	egress.retired = true;
	egress.retired_ms = loop.now_ms;
	peers_stop_listening();
	client_close_listeners();
}

static unsigned count_clients(void)
{
	return HASH_CNT(by_id, egress.clients);
}

static void take_part(struct peer *p)
{
	peers_read_all_but(p); /* what they have said already counts */
	const struct egress_head answer = {.op = EGRESS_PART, .sequence = count_clients()};
	peer_send(p, &answer, sizeof answer);
	if (answer.sequence == 0)
		_exit(0);
}

/* ---- the front's ---- */

static bool take_policy(const uint8_t *message, size_t len)
{
	struct egress_policy policy;
	if (len < sizeof policy)
		return false;
	memcpy(&policy, message, sizeof policy);
	if (policy.mode >= NETWORK_MODE_COUNT || !id_is_valid(policy.head.id) ||
		policy.rules_size > EGRESS_RULES_SIZE || policy.part_at > policy.rules_size ||
		policy.part_size > policy.rules_size - policy.part_at ||
		policy.part_size != len - sizeof policy)
		return false;
	return client_take_policy(&policy, message + sizeof policy);
}

/* A front that connects again still has what it was told; another one begins with nothing. */
static void take_begin(const struct peer *p)
{
	static pid_t front;
	if (p->pid != front)
		client_tell_all_anew();
	front = p->pid;
	client_begin_sync();
}

static bool take_front(
	const struct peer *p, const struct egress_head *head, const uint8_t *message, size_t len)
{
	switch (head->op) {
	case EGRESS_BEGIN:
		take_begin(p);
		return true;
	case EGRESS_POLICY:
		return take_policy(message, len);
	case EGRESS_FORGET:
		client_forget(client_find(head->id));
		return true;
	case EGRESS_END:
		client_forget_all_but_fresh();
		return true;
	default:
		return false;
	}
}

static bool control_tell_front(const void *message, size_t len)
{
	return peers_send(PEER_FRONT, message, len);
}

/* ---- a broker's ---- */

static void take_counts(const struct peer *p, const uint8_t *message, size_t len)
{
	struct broker_counts told;
	if (len != sizeof told)
		return;
	memcpy(&told, message, sizeof told);
	struct client *c = told.head.op == BROKER_COUNTS ? client_find(told.head.id) : NULL;
	if (c)
		brokered_count(c, p, &told);
}

/* ---- all of them ---- */

static void take_root(struct peer *p, const uint8_t *message, size_t len,
	const struct egress_head *head, int *fds)
{
	if (head->op == EGRESS_HELLO)
		take_hello(p);
	else if (head->op == EGRESS_CONFIGURE)
		take_config(message, len);
	else if (head->op == EGRESS_OPEN)
		take_open(message, len, fds);
	else if (head->op == EGRESS_BROKER)
		take_broker(head, fds);
	else if (head->op == EGRESS_RETIRE)
		control_retire();
	else if (head->op == EGRESS_PART)
		take_part(p);
}

static void control_take(struct peer *p, const uint8_t *message, size_t len, int fds[PEER_FDS])
{
	struct egress_head head;
	if (p->kind == PEER_BESIDE)
		take_counts(p, message, len);
	if (p->kind == PEER_BESIDE || len < sizeof head)
		return;
	memcpy(&head, message, sizeof head);
	head.id[ID_LEN] = '\0';
	if (p->kind == PEER_ROOT) {
		take_root(p, message, len, &head, fds);
		return;
	}
	if (egress.retired || !take_front(p, &head, message, len)) {
		peer_close(p); /* it speaks another version, or is not itself */
		return;
	}
	if (head.sequence) {
		head.op = EGRESS_DONE;
		peer_send(p, &head, sizeof head);
	}
}

static void control_closed(struct peer *p)
{
	if (p->kind == PEER_BESIDE)
		brokered_lost(p);
}

int control_open(int listen_fd)
{
	static const struct peer_handlers handlers = {control_take, control_closed};
	egress.tell_front = control_tell_front;
	return peers_listen(listen_fd, &handlers);
}

void control_check_end(void)
{
	bool drained = egress.connection_count == 0 || loop.now_ms - egress.retired_ms > RETIRE_MS;
	static bool had_root;
	had_root = had_root || peers_have(PEER_ROOT);
	if (egress.retired && drained)
		_exit(0);
	if (had_root && !peers_have(PEER_ROOT) && count_clients() == 0)
		_exit(0);
}
