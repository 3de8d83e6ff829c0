/* Handles events of a sandbox for its file calls and watchers. */
#include "box/files/part.h"

#include "box/sandbox/object.h"
#include "box/sandbox/part.h"

/* Each call has a connection of its own, and would hear of the end there as well. */
static void files_ended(struct sandbox *s, bool failed, const struct error *e)
{
	(void)failed;
	if (e)
		files_end_all(s, e);
}

const struct sandbox_part files_part = {
	.ended = files_ended,
	.awake = files_awake,
	.refused = files_refuse_waiting,
	.free = file_watcher_remove_all,
};
