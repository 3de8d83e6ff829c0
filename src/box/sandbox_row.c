/*
 * A sandbox from its row and back, and as everybody may read it. The row is what it is meant to be;
 * what it is at the moment is found out anew after a start.
 */
#include <stdio.h>

#include "base/clock.h"
#include "box/core.h"
#include "box/disks.h"

struct sandbox *sandbox_from_row(struct box *b, const struct sandbox_row *row)
{
	struct sandbox *s = sandbox_new(b, row->id);
	s->tenant = sandbox_copy_string(row->tenant);
	s->name = sandbox_copy_string(row->name);
	s->description = sandbox_copy_string(row->description);
	s->template_name = sandbox_copy_string(row->template_name);
	s->user = sandbox_copy_string(row->user);
	s->workdir = sandbox_copy_string(row->workdir);
	s->project = sandbox_copy_string(row->project);
	s->metadata = sandbox_copy_string(row->metadata);
	buf_append(&s->env, row->env, row->env_len);
	s->resources =
		(struct resources){row->memory, row->cpu, row->pids, row->open_files, row->disk};
	snprintf(s->snapshot, sizeof s->snapshot, "%s", row->snapshot);
	snprintf(s->parent, sizeof s->parent, "%s", row->parent);
	snprintf(s->build, sizeof s->build, "%s", row->build);
	snprintf(s->root, sizeof s->root, "%s", row->root);
	snprintf(s->layer, sizeof s->layer, "%s", row->layer);
	snprintf(s->checkpoint, sizeof s->checkpoint, "%s", row->checkpoint);
	volumes_unpack(row->volumes, s->volumes);
	s->idle_ms = row->idle_ms;
	s->execution_ms = row->execution_ms;
	s->auto_resume = row->auto_resume;
	s->lease_ms = row->lease_ms;
	s->lease_end_ms = row->lease_end_ms;
	s->paused_timeout_ms = row->paused_timeout_ms;
	sandbox_expiry_of(row->on_idle, &s->on_idle);
	sandbox_expiry_of(row->on_lease, &s->on_lease);
	s->events = (uint64_t)row->events;
	s->known = true;
	s->usage.cpu_before_us = row->cpu_us;
	s->usage.memory_byte_seconds = (double)row->memory_byte_seconds;
	s->paused_ms = row->paused_ms;
	s->status = s->intent = sandbox_status_of(row->status);
	s->pausing = s->status == SANDBOX_PAUSED || s->status == SANDBOX_SUSPENDED;
	snprintf(s->boot_id, sizeof s->boot_id, "%s", row->boot_id);
	s->created_ms = row->created_ms;
	s->startup_us = row->startup_us;
	s->executions = (uint64_t)row->executions;
	s->ephemeral = row->ephemeral;
	s->last_active_ms = s->awake_ms = clock_wall_ms(); /* a restart is not idleness */
	snprintf(s->failure, sizeof s->failure, "%s", row->failure);
	return s;
}

void sandbox_store(struct sandbox *s, enum sandbox_status status, store_done_fn *done, void *arg)
{
	autobuf volumes = {0};
	volumes_pack(s->volumes, &volumes);
	struct sandbox_row row = {
		.id = s->id,
		.tenant = s->tenant,
		.name = s->name,
		.description = s->description,
		.template_name = s->template_name,
		.user = s->user,
		.workdir = s->workdir,
		.project = s->project,
		.metadata = s->metadata,
		.env = s->env.data,
		.env_len = s->env.len,
		.memory = s->resources.memory,
		.cpu = s->resources.cpu,
		.pids = s->resources.pids,
		.open_files = s->resources.open_files,
		.disk = s->resources.disk,
		.snapshot = s->snapshot,
		.parent = s->parent,
		.build = s->build,
		.root = s->root,
		.layer = s->layer,
		.checkpoint = s->checkpoint,
		.volumes = volumes.data,
		.idle_ms = s->idle_ms,
		.execution_ms = s->execution_ms,
		.created_ms = s->created_ms,
		.startup_us = s->startup_us,
		.executions = (int64_t)s->executions,
		.ephemeral = s->ephemeral,
		.failure = s->failure,
		.status = sandbox_status_name(status),
		.boot_id = s->boot_id,
		.on_idle = sandbox_expiry_name(s->on_idle),
		.on_lease = sandbox_expiry_name(s->on_lease),
		.ended_by = "",
		.auto_resume = s->auto_resume,
		.paused_ms = s->paused_ms,
		.lease_ms = s->lease_ms,
		.lease_end_ms = s->lease_end_ms,
		.paused_timeout_ms = s->paused_timeout_ms,
		.cpu_us = s->usage.cpu_before_us,
		.memory_byte_seconds = (int64_t)s->usage.memory_byte_seconds,
	};
	s->intent = status;
	store_put_sandbox(s->box->store, &row, done, arg);
}

void sandbox_view(const struct sandbox *s, struct sandbox_view *out)
{
	*out = (struct sandbox_view){
		.id = s->id,
		.tenant = s->tenant,
		.name = s->name,
		.description = s->description,
		.template_name = s->template_name,
		.user = s->user,
		.workdir = s->workdir,
		.project = s->project,
		.metadata = s->metadata,
		.env = s->env.data,
		.env_len = s->env.len,
		.status = s->status,
		.ending = s->doomed,
		.failure = s->failure,
		.resources = s->resources,
		.idle_ms = s->idle_ms,
		.execution_ms = s->execution_ms,
		.created_ms = s->created_ms,
		.last_active_ms = s->last_active_ms,
		.expires_ms = sandbox_expires_ms(s),
		.terminates_ms = sandbox_terminates_ms(s),
		.lease_ms = s->lease_ms,
		.lease_end_ms = s->lease_end_ms,
		.paused_timeout_ms = s->paused_timeout_ms,
		.on_idle = s->on_idle,
		.on_lease = s->on_lease,
		.ended_by = "",
		.startup_us = s->startup_us,
		.executions = s->executions,
		.auto_resume = s->auto_resume,
		.ephemeral = s->ephemeral,
		.boot_id = s->boot_id,
		.snapshot = s->snapshot,
		.parent = s->parent,
		.volumes = s->volumes,
		.paused_ms = s->paused_ms,
	};
}

void sandbox_view_row(const struct sandbox_row *row, struct sandbox_view *out)
{
	*out = (struct sandbox_view){
		.id = row->id,
		.tenant = row->tenant,
		.name = row->name,
		.description = row->description,
		.template_name = row->template_name,
		.user = row->user,
		.workdir = row->workdir,
		.project = row->project,
		.metadata = row->metadata,
		.env = row->env,
		.env_len = row->env_len,
		.status = sandbox_status_of(row->status),
		.failure = row->failure,
		.resources = {row->memory, row->cpu, row->pids, row->open_files, row->disk},
		.idle_ms = row->idle_ms,
		.execution_ms = row->execution_ms,
		.created_ms = row->created_ms,
		.last_active_ms = row->ended_ms,
		.lease_ms = row->lease_ms,
		.paused_timeout_ms = row->paused_timeout_ms,
		.ended_ms = row->ended_ms,
		.ended_by = row->ended_by,
		.cpu_us = row->cpu_us,
		.memory_byte_seconds = row->memory_byte_seconds,
		.startup_us = row->startup_us,
		.executions = (uint64_t)row->executions,
		.auto_resume = row->auto_resume,
		.snapshot = row->snapshot,
		.parent = row->parent,
		.ephemeral = row->ephemeral,
		.boot_id = row->boot_id,
	};
	sandbox_expiry_of(row->on_idle, &out->on_idle);
	sandbox_expiry_of(row->on_lease, &out->on_lease);
}
