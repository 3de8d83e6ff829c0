/* A sandbox whose init is gone, or makes no sense: its processes are lost, its disk is not. */
#include "box/sandbox/failure.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "box/sandbox/connect.h"
#include "box/sandbox/object.h"
#include "box/sandbox/sandbox_row.h"
#include "box/sandbox/status.h"

static void failure_stored(void *arg, int error)
{
	(void)arg;
	if (error)
		log_error("a sandbox's failure could not be stored");
}

void sandbox_fail(struct sandbox *s, const char *reason)
{
	if (s->init.connected) {
		sandbox_not_connected(s, -EPROTO); /* whoever connects makes of it what is right */
		return;
	}
	init_link_close(s->init.link);
	s->init.link = NULL;
	/* A builder's work ends; whoever has it hears of that. */
	if (!s->listed && s->tenant)
		sandbox_parts_ended(s, true, NULL);
	if (!s->listed || s->ending.doomed || s->status == SANDBOX_STOPPING ||
		s->status == SANDBOX_FAILED)
		return;
	log_warn("a sandbox failed", "sandbox", s->id, "reason", reason);
	snprintf(s->failure, sizeof s->failure, "%s", reason);
	bool known = s->status != SANDBOX_CREATING;
	sandbox_set_status(s, SANDBOX_FAILED);
	tenant_force_charge(s, CHARGE_DISK);
	struct error e;
	error_set(&e, ERROR_NOT_RUNNING, "the sandbox has failed: %s", reason);
	sandbox_parts_ended(s, true, &e);
	if (!known)
		return;
	event_record(s, EVENT_FAILED, CAUSE_CRASH,
		(struct event_detail[]){{"reason", reason}, {NULL, NULL}});
	sandbox_store(s, SANDBOX_FAILED, failure_stored, NULL);
}
