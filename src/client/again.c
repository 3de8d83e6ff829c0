#include "client/again.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "client/call.h"

#define PAUSE_NS 200000000

static bool again_is_lost(const struct bunker_error *e)
{
	return strcmp(e->code, BUNKER_CONNECTION_LOST) == 0;
}

/* A server that begins to listen may not have all of its parts yet. */
static bool again_is_away(const struct bunker_error *e)
{
	return again_is_lost(e) || strcmp(e->code, BUNKER_NO_SERVER) == 0 || e->http_status == 503;
}

bool client_again(struct again *a, const struct bunker_error *e)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	unsigned patience_s = client_call_patience(a->bunker);
	/* Who does not ask why a call failed does not wait for it either. */
	if (!e)
		return false;
	if (a->deadline_us == 0 && patience_s > 0 && again_is_lost(e))
		a->deadline_us = clock_monotonic_us() + patience_s * 1000000LL;
	if (!again_is_away(e) || clock_monotonic_us() >= a->deadline_us)
		return false;
	nanosleep(&pause, NULL);
	return true;
}

void client_again_progress(struct again *a)
{
	a->deadline_us = 0;
}
