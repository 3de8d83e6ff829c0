/*
 * What the front is told: how much went in and out, and what was refused. Amounts wait until there
 * is a front. Of refusals one for each destination and minute is told, and so many of a sandbox, so
 * that a scan of everything is no flood of events.
 */
#include <string.h>

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

void tell_counts(struct client *c)
{
	struct egress_counts counts = {
		.head.op = EGRESS_COUNTS, .bytes_in = c->bytes_in, .bytes_out = c->bytes_out};
	memcpy(counts.head.id, c->id, ID_LEN);
	if (c->bytes_in + c->bytes_out > 0 && egress.tell_front(&counts, sizeof counts))
		c->bytes_in = c->bytes_out = 0;
}

void tell_tick(void)
{
	static int64_t last_ms;
	if (loop.now_ms - last_ms < COUNTS_MS)
		return;
	last_ms = loop.now_ms;
	for (struct client *c = egress.clients; c; c = c->by_id.next)
		tell_counts(c);
}
