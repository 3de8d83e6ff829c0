/* What becomes of processes when something happens to their sandbox. */
#include "base/clock.h"
#include "box/process/execution_core.h"
#include "box/sandbox/object.h"
#include "box/sandbox/part.h"

static bool process_frame(struct sandbox *s, const struct frame_header *h, const char *payload)
{
	struct record record;
	if (h->type != FRAME_RECORD)
		execution_handle_frame(s, h, payload);
	else if (s->init.connected && s->tenant &&
		 frame_decode_record(payload, h->size, &record) == 0)
		execution_adopt(s, h->tag, &record);
	return true;
}

static void process_ended(struct sandbox *s, bool failed, const struct error *e)
{
	(void)e;
	execution_end_all(s, failed ? EXECUTION_FAILED : EXECUTION_CANCELLED);
	if (s->init.unheard && !failed)
		store_end_begun(s->box->store, s->id, execution_status_name(EXECUTION_CANCELLED),
			clock_wall_ms());
}

const struct sandbox_part process_part = {
	.frame = process_frame,
	.ended = process_ended,
	.refused = execution_refuse_queued,
};
