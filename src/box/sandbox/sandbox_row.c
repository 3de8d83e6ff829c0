/*
 * Conversion of a sandbox from its row, to its row and to a view. The row holds the intended state;
 * the actual state is found out after a start.
 */
#include "box/sandbox/sandbox_row.h"

#include "base/clock.h"
#include "box/sandbox/lease.h"
#include "box/sandbox/object.h"
#include "box/sandbox/volume_list.h"

struct sandbox *sandbox_from_row(struct box *b, const struct sandbox_record *row)
{
	struct sandbox *s = sandbox_new(b, row->id);
	fields_copy(&sandbox_model, 0, sizeof *row, &s->record, row);
	volumes_unpack(row->packed_volumes, s->disk.volumes);
	s->known = true;
	s->usage.cpu_before_us = row->cpu_us;
	s->usage.memory_byte_seconds = (double)row->memory_byte_seconds;
	s->cpu_us = s->memory_byte_seconds = 0; /* told of ended sandboxes only */
	s->intent = row->status;
	s->pause.pausing = s->status == SANDBOX_PAUSED || s->status == SANDBOX_SUSPENDED;
	s->last_active_ms = lease_now_ms(b); /* a restart is not idleness */
	s->lease.awake_us = clock_monotonic_us();
	return s;
}

void sandbox_store(struct sandbox *s, enum sandbox_status status, store_done_fn *done, void *arg)
{
	autobuf volumes = {0};
	volumes_pack(s->disk.volumes, &volumes);
	struct sandbox_record row = s->record;
	row.packed_volumes = volumes.data;
	row.lease_end_ms = lease_wall_ms(s->box, s->lease_end_ms);
	row.paused_ms = lease_wall_ms(s->box, s->paused_ms);
	row.status = s->intent = status;
	row.cpu_us = s->usage.cpu_before_us;
	row.memory_byte_seconds = (int64_t)s->usage.memory_byte_seconds;
	store_put_sandbox(s->box->store, &row, done, arg);
}

void sandbox_view(const struct sandbox *s, struct sandbox_view *out)
{
	out->record = s->record;
	out->last_active_ms = lease_wall_ms(s->box, s->last_active_ms);
	out->lease_end_ms = lease_wall_ms(s->box, s->lease_end_ms);
	out->paused_ms = lease_wall_ms(s->box, s->paused_ms);
	out->expires_ms = lease_wall_ms(s->box, lease_next(s, false).at_ms);
	out->terminates_ms = lease_wall_ms(s->box, lease_next(s, true).at_ms);
	out->ending = s->ending.doomed;
	out->volumes = s->disk.volumes;
	for (size_t i = 0; i < WARDEN_VOLUMES_MAX; i++)
		out->volume_names[i] = s->box->hooks->volume_name(s->box, s->disk.volumes[i].id);
}
