/*
 * Connections to names with rules: when both sides are open they are handed to the broker of the
 * sandbox's tenant, which reads their first bytes and everything else. We keep our own descriptors
 * of both sockets, so that limits hold, and so that a policy can end a connection at once, whatever
 * the broker does. Without a broker such a connection goes nowhere.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "egress/connection.h"
#include "stream/peer.h"
#include "wire/broker.h"

#define HANDING_MS 2000 /* for a broker to be there */

void brokered_open(const char *id, int fd)
{
	struct peer *former = peers_find(id);
	if (former)
		peer_close(former);
	peer_add(fd, id);
}

/* ---- handing over ---- */

static struct broker_connection brokered_describe(const struct connection *x, uint32_t op)
{
	struct broker_connection c = {.head = {.op = op},
		.number = x->number,
		.port = x->destination.port,
		.is_tls = x->is_tls};
	memcpy(c.head.id, x->client->id, ID_SIZE);
	memcpy(c.host, x->name, strnlen(x->name, sizeof c.host - 1));
	return c;
}

static bool brokered_hand_over(struct connection *x)
{
	static uint64_t numbers;
	struct peer *broker = peers_find(x->client->policy.broker);
	const int fds[] = {x->inner.fd, x->outer.fd};
	x->number = ++numbers;
	const struct broker_connection c = brokered_describe(x, BROKER_CONNECTION);
	if (!broker || peer_try_send(broker, &c, sizeof c, fds, ARRAY_LEN(fds)) < 0)
		return false;
	loop_leave(&x->inner);
	loop_leave(&x->outer);
	x->broker = broker;
	x->active_ms = loop.now_ms;
	connection_set_stage(x, STAGE_BROKERED);
	return true;
}

void brokered_begin(struct connection *x)
{
	if (!brokered_hand_over(x))
		connection_set_stage(x, STAGE_HANDING);
}

void brokered_tick(struct connection *x)
{
	if (!brokered_hand_over(x) && loop.now_ms - x->since_ms > HANDING_MS)
		connection_reset(x);
}

/* ---- the end ---- */

/* Closing would not end what the broker has open, too; this resets the connection itself. */
static void brokered_disconnect(int fd)
{
	const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
	if (fd >= 0 && connect(fd, &nowhere, sizeof nowhere) < 0)
		log_debug("a connection is gone already", "error", strerror(errno));
}

void brokered_cut(struct connection *x)
{
	const struct broker_connection c = brokered_describe(x, BROKER_RESET);
	brokered_disconnect(x->inner.fd);
	brokered_disconnect(x->outer.fd);
	/* A broker that takes no more finds out by its sockets. */
	peer_try_send(x->broker, &c, sizeof c, NULL, 0);
	x->broker = NULL;
}

void brokered_lost(const struct peer *broker)
{
	for (struct client *c = egress.clients; c; c = c->by_id.next) {
		struct connection *x = c->connections, *next;
		for (; x; x = next) {
			next = x->next;
			if (x->broker == broker)
				connection_reset(x);
		}
	}
}

/* ---- what it carried ---- */

void brokered_count(struct client *c, const struct peer *broker, const struct broker_counts *told)
{
	struct connection *x = c->connections;
	while (x && (x->broker != broker || x->number != told->number))
		x = x->next;
	if (!x)
		return;
	x->sent += told->sent;
	x->received += told->received;
	x->active_ms = loop.now_ms;
	connection_count(x);
	if (!told->ended)
		return;
	x->broker = NULL; /* it has said how its side ends: in order, or by a reset */
	connection_reset(x);
}
