/* Handles events of a sandbox for its processes. */
#include <errno.h>

#include "base/clock.h"
#include "box/process/execution_core.h"
#include "box/sandbox/failure.h"
#include "box/sandbox/object.h"
#include "box/sandbox/part.h"

/* Handles PROCESS frames between HELLO and READY of a sandbox that an earlier front had. */
static int process_record(struct sandbox *s, const struct frame_header *h, const char *payload)
{
	struct process_frame record;
	if (!s->tenant)
		return 0;
	if (!s->init.connected || s->init.greeted_us || s->init.records++ >= FRAME_MAX_RECORDS)
		return -EPROTO;
	int r = frame_decode_process(payload, h->size, &record);
	return r < 0 ? r : execution_adopt(s, h->tag, &record);
}

static bool process_frame(struct sandbox *s, const struct frame_header *h, const char *payload)
{
	if (h->type != FRAME_PROCESS)
		execution_handle_frame(s, h, payload);
	else if (process_record(s, h, payload) < 0)
		sandbox_fail(s, "its init names a process that it was not given");
	return true;
}

static void process_ended(struct sandbox *s, bool failed, const struct error *e)
{
	(void)e;
	execution_end_all(s, failed ? EXECUTION_FAILED : EXECUTION_CANCELLED);
	if (!s->init.unheard || failed)
		return;
	store_end_begun(
		s->box->store, s->id, execution_status_name(EXECUTION_CANCELLED), clock_wall_ms());
	execution_forget_recorded(s);
}

const struct sandbox_part process_part = {
	.frame = process_frame,
	.ended = process_ended,
	.refused = execution_refuse_queued,
};
