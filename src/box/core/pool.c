/*
 * Sandboxes that are booted before anybody asks. Each has its final id already, so taking one is
 * removing it from a list: it cannot be lent twice. One that we die with is in the kernel but not
 * in the store, and the next start destroys it.
 */
#include "box/core/pool.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/log.h"
#include "box/sandbox/halt.h"
#include "box/sandbox/later.h"
#include "box/sandbox/object.h"

/*
 * Booting takes a processor for milliseconds: it waits until nobody has come or gone for a while,
 * longer after one has come, who is about to use what it got.
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
	b->pool_booting--;
	if (e) {
		sandbox_free(s);
		/* The next create tries again, and says why to somebody. */
		log_warn("cannot boot a sandbox for the pool", "error", e->message);
		return;
	}
	DL_APPEND(b->pool, s);
	s->pooled = true;
	b->pool_count++;
	if (b->closing)
		pool_drain(b);
	else if (!uv_is_active((uv_handle_t *)&b->refill_timer))
		refill_timer_fired(&b->refill_timer);
}

/* One at a time: whoever creates a sandbox now must not wait behind the pool. */
static void refill_timer_fired(uv_timer_t *timer)
{
	struct box *b = timer->data;
	char id[ID_SIZE];
	if (b->closing || b->pool_booting > 0 || b->pool_count >= b->config.pool_size)
		return;
	id_generate(id);
	struct sandbox *s = sandbox_new(b, id);
	s->resources = b->config.defaults;
	b->pool_booting++;
	sandbox_boot(s, false, pool_booted, s);
}

static void refill_after(struct box *b, unsigned quiet_ms)
{
	/* Not before the start has found out what is left of an earlier server's pool. */
	if (b->pool_count >= b->config.pool_size || b->closing || b->ready)
		return;
	/* A steady stream of creates never leaves a pause. */
	bool low = b->pool_count < b->config.pool_size / 4;
	uv_timer_start(&b->refill_timer, refill_timer_fired, low ? 0 : quiet_ms, 0);
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
	struct sandbox *s = b->pool;
	if (s) {
		DL_DELETE(b->pool, s);
		b->pool_count--;
		s->pooled = false;
		s->prev = s->next = NULL;
	}
	return s;
}

void pool_discard(struct sandbox *s)
{
	struct box *b = s->box;
	DL_DELETE(b->pool, s);
	b->pool_count--;
	b->driver->destroy(b->driver, s->id, core_pool_discarded, b);
	sandbox_free(s);
	pool_refill(b);
}

void pool_drain(struct box *b)
{
	while (b->pool)
		pool_discard(b->pool);
}
