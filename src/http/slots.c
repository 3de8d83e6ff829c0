#include "http/slots.h"

#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "base/address.h"
#include "base/mem.h"
#include "http/server.h"

/* IPv6 is counted by network: a host with one address of it has them all. */
#define PEER_KEY_SIZE 8

struct http_peer {
	uint8_t key[PEER_KEY_SIZE];
	unsigned count;
	UT_hash_handle hh;
};

static bool is_mapped(const struct sockaddr_in6 *in6)
{
	return IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
}

/* A socket that is none of the internet is local, too. */
static bool slots_are_local(const struct sockaddr_storage *address)
{
	struct address_port a;
	return !address_from_socket(address, &a) || address_is_loopback(&a.address);
}

static void put_key(const struct sockaddr_storage *address, uint8_t key[PEER_KEY_SIZE])
{
	const struct sockaddr_in *in = (const void *)address;
	const struct sockaddr_in6 *in6 = (const void *)address;
	memset(key, 0, PEER_KEY_SIZE);
	if (address->ss_family == AF_INET)
		memcpy(key, &in->sin_addr, sizeof in->sin_addr);
	else if (is_mapped(in6))
		memcpy(key, in6->sin6_addr.s6_addr + 12, 4);
	else
		memcpy(key, in6->sin6_addr.s6_addr, PEER_KEY_SIZE);
}

uint64_t http_client_network(const struct http_request *req)
{
	struct sockaddr_storage address = {0};
	int len = sizeof address;
	uint64_t key = 0;
	uint8_t bytes[PEER_KEY_SIZE];
	if (uv_tcp_getpeername(&req->connection->tcp, (struct sockaddr *)&address, &len) < 0)
		return 0;
	put_key(&address, bytes);
	for (size_t i = 0; i < PEER_KEY_SIZE; i++)
		key = key * 31 + bytes[i];
	return key;
}

struct http_peer *http_peer_count(struct http_server *s, const struct sockaddr_storage *address)
{
	uint8_t key[PEER_KEY_SIZE];
	struct http_peer *peer;
	if (s->limits.per_address == 0 || (!s->limits.counts_loopback && slots_are_local(address)))
		return NULL;
	put_key(address, key);
	HASH_FIND(hh, s->peers, key, PEER_KEY_SIZE, peer);
	if (!peer) {
		peer = mem_new(sizeof *peer);
		memcpy(peer->key, key, PEER_KEY_SIZE);
		HASH_ADD(hh, s->peers, key, PEER_KEY_SIZE, peer);
	}
	peer->count++;
	return peer;
}

void http_peer_drop(struct http_server *s, struct http_peer *peer)
{
	if (!peer || --peer->count > 0)
		return;
	HASH_DEL(s->peers, peer);
	free(peer);
}

/* Closes the stranger that has waited longest for its head; of this peer, if one is given. */
static bool stranger_evict(struct http_server *s, const struct http_peer *peer)
{
	struct http_connection *c;
	DL_FOREACH2(s->strangers, c, stranger_next)
	{
		if (c->phase != HTTP_PHASE_HEAD || (peer && c->peer != peer))
			continue;
		http_connection_close(c);
		s->counters.connections_evicted++;
		return true;
	}
	return false;
}

bool http_slots_make(struct http_server *s, const struct http_peer *peer)
{
	const struct http_limits *l = &s->limits;
	if (peer && peer->count > l->per_address && !stranger_evict(s, peer))
		return false;
	if (s->stranger_count + l->known_places >= l->connections && !stranger_evict(s, NULL))
		return false;
	return s->entered < l->connections || stranger_evict(s, NULL);
}

void http_slots_enter(struct http_connection *c, struct http_peer *peer)
{
	struct http_server *s = c->server;
	c->entered = c->stranger = true;
	DL_APPEND2(s->strangers, c, stranger_prev, stranger_next);
	s->stranger_count++;
	s->entered++;
	c->peer = peer;
}

void http_slots_know(struct http_connection *c)
{
	struct http_server *s = c->server;
	if (!c->stranger)
		return;
	c->stranger = false;
	DL_DELETE2(s->strangers, c, stranger_prev, stranger_next);
	s->stranger_count--;
}

void http_slots_leave(struct http_connection *c)
{
	struct http_server *s = c->server;
	if (!c->entered)
		return;
	http_slots_know(c);
	c->entered = false;
	s->entered--;
	http_peer_drop(s, c->peer);
	c->peer = NULL;
}
