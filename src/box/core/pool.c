/*
 * Sandboxes that are booted in advance. Each has its final id already, so taking one is removing it
 * from a list: it cannot be lent twice. If the front dies, a pooled sandbox is in the kernel but
 * not in the store, and the next start destroys it.
 */
#include "box/core/pool.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/log.h"
#include "box/sandbox/halt.h"
#include "box/sandbox/later.h"
#include "box/sandbox/object.h"

/*
 * Booting takes a processor for milliseconds, so the refill waits until no sandbox was taken or
 * destroyed for a while; longer after a take, because its new owner is about to use it.
 */
#define REFILL_QUIET_MS 5
#define REFILL_USED_MS  50

static void refill_timer_fired(uv_timer_t *timer);

static void core_pool_discarded(void *arg, const struct warden_reply *reply)
{
	(void)reply;
	box_check_closed(arg);
}

static void pool_booted(void *arg, const struct error *e)
{
	struct sandbox *s = arg;
	struct box *b = s->box;
	b->pool.booting--;
	if (e) {
		sandbox_free(s);
		/* The next create tries again and reports the error to its client. */
		log_warn("cannot boot a sandbox for the pool", "error", e->message);
		return;
	}
	DL_APPEND(b->pool.first, s);
	s->pooled = true;
	b->pool.count++;
	if (b->closing)
		pool_drain(b);
	else if (!uv_is_active((uv_handle_t *)&b->pool.refill_timer))
		refill_timer_fired(&b->pool.refill_timer);
}

/* Boots one at a time, so that a create does not wait behind the pool. */
static void refill_timer_fired(uv_timer_t *timer)
{
	struct box *b = timer->data;
	char id[ID_SIZE];
	if (b->closing || b->pool.booting > 0 || b->pool.count >= b->config.pool_size)
		return;
	id_generate(id);
	struct sandbox *s = sandbox_new(b, id);
	s->resources = b->config.defaults;
	b->pool.booting++;
	sandbox_boot(s, false, pool_booted, s);
}

static void refill_after(struct box *b, unsigned quiet_ms)
{
	/* No refill before the start has found what is left of an earlier server's pool. */
	if (b->pool.count >= b->config.pool_size || b->closing || b->starting)
		return;
	/* A steady stream of creates never leaves a pause. */
	bool low = b->pool.count < b->config.pool_size / 4;
	uv_timer_start(&b->pool.refill_timer, refill_timer_fired, low ? 0 : quiet_ms, 0);
}

void pool_refill(struct box *b)
{
	refill_after(b, REFILL_QUIET_MS);
}

void pool_refill_later(struct box *b)
{
	refill_after(b, REFILL_USED_MS);
}

struct sandbox *pool_take(struct box *b)
{
	struct sandbox *s = b->pool.first;
	if (s) {
		DL_DELETE(b->pool.first, s);
		b->pool.count--;
		s->pooled = false;
		s->prev = s->next = NULL;
	}
	return s;
}

void pool_discard(struct sandbox *s)
{
	struct box *b = s->box;
	DL_DELETE(b->pool.first, s);
	b->pool.count--;
	b->driver->destroy(b->driver, s->id, core_pool_discarded, b);
	sandbox_free(s);
	pool_refill(b);
}

void pool_drain(struct box *b)
{
	while (b->pool.first)
		pool_discard(b->pool.first);
}
