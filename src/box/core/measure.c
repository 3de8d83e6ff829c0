#include "box/core/measure.h"

#include <stdlib.h>

#include "base/mem.h"
#include "box/disk/disks.h"
#include "box/sandbox/later.h"

struct measurement {
	struct box *box;
	disk_measured_fn *measured;
	void *arg;
};

static void measurement_done(void *arg, const struct keeper_reply *reply)
{
	struct measurement *m = arg;
	struct box *b = m->box;
	m->measured(m->arg, &(struct disk_measured){reply->error, reply->bytes, reply->files});
	free(m);
	b->core.measurements--;
	box_check_closed(b);
}

void disk_measure(
	struct box *b, enum disk_kind kind, const char *id, disk_measured_fn *measured, void *arg)
{
	struct disk_name disk = disk_named(kind, id);
	struct measurement *m = mem_new(sizeof *m);
	*m = (struct measurement){b, measured, arg};
	b->core.measurements++;
	b->driver->disk_measure(b->driver, &disk, measurement_done, m);
}
