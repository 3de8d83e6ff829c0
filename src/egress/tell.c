/*
 * What the front is told: how much went in and out, to and from where, and what was refused.
 * Amounts wait until there is a front that has room for them. Of refusals one for each destination
 * and minute is told, and so many of a sandbox, so that a scan of everything is no flood of events.
 */
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "egress/egress.h"

#define COUNTS_MS      1000
#define MINUTE_MS      (60 * 1000)
#define DENIALS_A_TIME 30 /* of a sandbox, in a minute */

/* FNV-1a: two destinations that are taken for one cost an event, and nothing else. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t len)
{
	const uint8_t *at = data;
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ at[i]) * UINT64_C(1099511628211);
	return hash;
}

static bool denial_is_news(struct denials *d, uint64_t hash)
{
	struct denial *slot = &d->recent[hash % ARRAY_LEN(d->recent)];
	if (loop.now_ms - d->minute_ms >= MINUTE_MS) {
		d->minute_ms = loop.now_ms;
		d->told = 0;
	}
	bool repeated = slot->hash == hash && loop.now_ms - slot->ms < MINUTE_MS;
	if (repeated || d->told >= DENIALS_A_TIME)
		return false;
	*slot = (struct denial){hash, loop.now_ms};
	d->told++;
	return true;
}

void tell_denied(struct client *c, const char *host, const struct address_port *a)
{
	struct egress_denied denied = {.head.op = EGRESS_DENIED};
	destination_find(&c->destinations, host, a, loop.now_ms)->total.refused++;
	uint64_t hash = UINT64_C(14695981039346656037);
	memcpy(denied.head.id, c->id, ID_LEN);
	if (a) {
		denied.has_address = 1;
		denied.address = a->address;
		denied.port = a->port;
		hash = hash_bytes(hash, &a->port, sizeof a->port);
	}
	if (host)
		memcpy(denied.host, host, strnlen(host, sizeof denied.host - 1));
	if (a && !denied.host[0])
		hash = hash_bytes(hash, &a->address, sizeof a->address);
	hash = hash_bytes(hash, denied.host, strlen(denied.host));
	if (denial_is_news(&c->denials, hash))
		egress.tell_front(&denied, sizeof denied);
}

static bool tell_bytes(struct client *c)
{
	struct egress_counts counts = {
		.head.op = EGRESS_COUNTS, .bytes_in = c->bytes_in, .bytes_out = c->bytes_out};
	memcpy(counts.head.id, c->id, ID_LEN);
	if (c->bytes_in + c->bytes_out == 0)
		return true;
	if (!egress.tell_front(&counts, sizeof counts))
		return false;
	c->bytes_in = c->bytes_out = 0;
	return true;
}

static bool tell_destination(const struct client *c, struct destination *d)
{
	const struct traffic *now = &d->total, *told = &d->told;
	struct egress_traffic traffic = {.head.op = EGRESS_TRAFFIC,
		.connections = now->connections - told->connections,
		.failed = now->failed - told->failed,
		.refused = now->refused - told->refused,
		.bytes_in = now->bytes_in - told->bytes_in,
		.bytes_out = now->bytes_out - told->bytes_out,
		.age_ms = (uint64_t)(loop.now_ms - d->used_ms),
		.address = d->address,
		.has_address = d->has_address,
		.port = d->port};
	memcpy(traffic.head.id, c->id, ID_LEN);
	memcpy(traffic.host, d->host, strnlen(d->host, sizeof traffic.host - 1));
	if (memcmp(now, told, sizeof *now) == 0)
		return true;
	if (!egress.tell_front(&traffic, sizeof traffic))
		return false;
	d->told = *now;
	return true;
}

bool tell_client(struct client *c)
{
	struct destination *d;
	if (!tell_bytes(c))
		return false;
	DL_FOREACH (c->destinations.list, d)
		if (!tell_destination(c, d))
			return false;
	c->told_ms = loop.now_ms;
	return true;
}

/* One whom a front without room could not be told of is told of first the next time. */
void tell_tick(void)
{
	for (struct client *c = egress.clients; c; c = c->by_id.next)
		if (loop.now_ms - c->told_ms >= COUNTS_MS && !tell_client(c))
			return;
}
