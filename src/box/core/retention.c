/*
 * Forgets executions and sandboxes that ended longer ago than the retention. However many there
 * are, they go in slices with a pause between two, so that a create waits for one slice at most.
 */
#include "box/core/retention.h"

#include "base/clock.h"
#include "box/process/kept.h"
#include "box/sandbox/object.h"
#include "box/template/catalogue.h"

#define CHECK_MS       (10 * 60 * 1000)
#define FIRST_CHECK_MS 1000
#define SLICE_ROWS     200 /* of each table: some 5 ms */
#define SLICE_PAUSE_MS 20

static void retention_fired(uv_timer_t *timer);

static void slice_ended(struct box *b)
{
	bool more =
		b->core.expired_executions == SLICE_ROWS || b->core.expired_sandboxes == SLICE_ROWS;
	if (b->closing)
		return;
	uv_timer_start(
		&b->core.retention_timer, retention_fired, more ? SLICE_PAUSE_MS : CHECK_MS, 0);
	if (!more)
		layers_collect(b->catalogue);
}

static void retention_executions_expired(void *arg, unsigned count)
{
	struct box *b = arg;
	b->core.expired_executions = count;
}

/* The executions were told before. */
static void retention_sandbox_expired(void *arg, const char *id)
{
	struct box *b = arg;
	if (id)
		b->core.expired_sandboxes++;
	else
		slice_ended(b);
}

static void retention_fired(uv_timer_t *timer)
{
	struct box *b = timer->data;
	int64_t before = clock_wall_ms() - b->config.retention_ms;
	b->core.expired_sandboxes = 0;
	kept_expire(b, before, SLICE_ROWS, retention_executions_expired, b);
	store_expire_sandboxes(b->store, before, SLICE_ROWS, retention_sandbox_expired, b);
}

void retention_start(struct box *b)
{
	uv_timer_start(&b->core.retention_timer, retention_fired, FIRST_CHECK_MS, 0);
}
