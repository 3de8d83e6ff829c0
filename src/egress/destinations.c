#include "egress/destinations.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/mem.h"

#define HOST_MAX 255
#define KEY_MAX  (sizeof(uint16_t) + HOST_MAX) /* a port, then a name without its NUL */

_Static_assert(
	offsetof(struct destination, host) == offsetof(struct destination, port) + sizeof(uint16_t),
	"port and host are one key");

static struct destination *destination_new(struct destinations *all, const char *host, size_t len)
{
	struct destination *d = mem_new(sizeof *d + len + 1);
	memcpy(d->host, host, len);
	DL_PREPEND(all->list, d);
	return d;
}

static void traffic_add(struct traffic *to, const struct traffic *from)
{
	to->connections += from->connections;
	to->failed += from->failed;
	to->refused += from->refused;
	to->bytes_in += from->bytes_in;
	to->bytes_out += from->bytes_out;
}

static struct destination *destination_for_many(struct destinations *all)
{
	if (!all->other)
		all->other = destination_new(all, "", 0);
	return all->other;
}

/* What was told of the one that goes was told: the front keeps it, or gives it up itself. */
static void destination_merge(struct destinations *all, struct destination *d)
{
	struct destination *other = destination_for_many(all);
	traffic_add(&other->total, &d->total);
	traffic_add(&other->told, &d->told);
	if (other->used_ms < d->used_ms)
		other->used_ms = d->used_ms;
	HASH_DELETE(by_key, all->by_key, d);
	DL_DELETE(all->list, d);
	all->count--;
	free(d);
}

/* Returns false if all of them have connections. */
static bool destinations_make_room(struct destinations *all)
{
	struct destination *d;
	if (all->count < DESTINATIONS_MAX)
		return true;
	for (d = all->list->prev; d->open > 0 || d == all->other; d = d->prev)
		if (d == all->list)
			return false;
	destination_merge(all, d);
	return true;
}

static void destination_use(struct destinations *all, struct destination *d, int64_t now_ms)
{
	d->used_ms = now_ms;
	if (d == all->list)
		return;
	DL_DELETE(all->list, d);
	DL_PREPEND(all->list, d);
}

struct destination *destination_find(
	struct destinations *all, const char *host, const struct address_port *a, int64_t now_ms)
{
	char address[HOST_MAX + 1] = "", key[KEY_MAX];
	const uint16_t port = a ? a->port : 0;
	struct destination *d = NULL;
	if (a && !(host && host[0]))
		address_format(&a->address, address);
	const char *name = host && host[0] ? host : address;
	size_t len = strnlen(name, HOST_MAX);
	memcpy(key, &port, sizeof port);
	memcpy(key + sizeof port, name, len);
	HASH_FIND(by_key, all->by_key, key, sizeof port + len, d);
	if (!d && ((len == 0 && !a) || !destinations_make_room(all))) {
		d = destination_for_many(all);
	} else if (!d) {
		d = destination_new(all, name, len);
		d->port = port;
		HASH_ADD_KEYPTR(by_key, all->by_key, &d->port, sizeof d->port + len, d);
		all->count++;
	}
	destination_use(all, d, now_ms);
	if (a && d != all->other) {
		d->address = a->address;
		d->has_address = true;
	}
	return d;
}

void destination_add_bytes(
	struct destinations *all, struct destination *d, uint64_t in, uint64_t out, int64_t now_ms)
{
	if (in + out == 0)
		return;
	d->total.bytes_in += in;
	d->total.bytes_out += out;
	destination_use(all, d, now_ms);
}

void destinations_untell(struct destinations *all)
{
	struct destination *d;
	DL_FOREACH (all->list, d)
		d->told = (struct traffic){0};
}

void destinations_finish(struct destinations *all)
{
	struct destination *d, *next;
	HASH_CLEAR(by_key, all->by_key);
	DL_FOREACH_SAFE (all->list, d, next)
		free(d);
	*all = (struct destinations){0};
}
