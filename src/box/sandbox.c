/*
 * A sandbox as an object: its memory, its place in the tables, its row in the store, its connection
 * to its init. What happens to it in time is in creation.c, pause.c, halt.c, idle.c and ending.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "box/core.h"
#include "box/disks.h"

/* ---- memory and tables ---- */

struct disk_name disk_of(const struct sandbox *s)
{
	struct disk_name disk = {.kind = DISK_BOX};
	memcpy(disk.id, s->id, ID_SIZE);
	return disk;
}

struct sandbox *sandbox_new(struct box *b, const char *id)
{
	struct sandbox *s = calloc(1, sizeof *s);
	if (!s)
		abort();
	s->box = b;
	memcpy(s->id, id, ID_SIZE);
	return s;
}

void sandbox_free(struct sandbox *s)
{
	watcher_remove_all(s);
	init_link_close(s->link);
	code_forget_all(s);
	usage_end(s);
	if (s->charge != CHARGE_NONE)
		tenant_force_charge(s, CHARGE_NONE);
	if (s->listed) {
		HASH_DELETE(by_id, s->box->sandboxes, s);
		DL_DELETE(s->box->order, s);
		s->box->counters.sandboxes--;
	}
	while (s->checkpoints)
		checkpoint_free(s->checkpoints);
	char *const strings[] = {s->tenant, s->name, s->description, s->template_name, s->user,
		s->workdir, s->project, s->metadata};
	for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
		free(strings[i]);
	buf_finish(&s->env);
	free(s);
}

static bool is_after(const struct sandbox *a, int64_t ms, const char *id)
{
	return a->created_ms > ms || (a->created_ms == ms && strcmp(a->id, id) > 0);
}

/* The order is by time and id, which is what a cursor names; new ones nearly always belong at the
 * end. */
void sandbox_add(struct sandbox *s)
{
	struct sandbox *at = s->box->order ? s->box->order->prev : NULL; /* the last */
	HASH_ADD(by_id, s->box->sandboxes, id, ID_LEN, s);
	while (at && is_after(at, s->created_ms, s->id))
		at = at == s->box->order ? NULL : at->prev;
	if (at)
		DL_APPEND_ELEM(s->box->order, at, s);
	else
		DL_PREPEND(s->box->order, s);
	s->listed = true;
	s->box->counters.sandboxes++;
}

char *sandbox_copy_string(const char *text)
{
	char *copy = strdup(text ? text : "");
	if (!copy)
		abort();
	return copy;
}

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

struct sandbox *sandbox_find_any(struct box *b, const char *id)
{
	struct sandbox *s = NULL;
	if (id_is_valid(id))
		HASH_FIND(by_id, b->sandboxes, id, ID_LEN, s);
	return s;
}

struct sandbox *sandbox_find(struct box *b, const char *tenant, const char *id)
{
	struct sandbox *s = sandbox_find_any(b, id);
	return s && strcmp(s->tenant, tenant) == 0 ? s : NULL;
}

struct sandbox *sandbox_search(struct box *b, bool (*matches)(void *arg, const char *id), void *arg)
{
	struct sandbox *s = b->order;
	while (s && !matches(arg, s->id))
		s = s->next;
	return s;
}

static struct sandbox *of_same_tenant(struct sandbox *s, const char *tenant)
{
	while (s && strcmp(s->tenant, tenant) != 0)
		s = s->next;
	return s;
}

struct sandbox *sandbox_first(
	struct box *b, const char *tenant, int64_t after_ms, const char *after_id)
{
	struct sandbox *s = b->order;
	while (s && !is_after(s, after_ms, after_id))
		s = s->next;
	return of_same_tenant(s, tenant);
}

struct sandbox *sandbox_next(const struct sandbox *s)
{
	return of_same_tenant(s->next, s->tenant);
}

/* The first in the list has the last as its predecessor. */
static struct sandbox *before(const struct sandbox *s)
{
	return s == s->box->order ? NULL : s->prev;
}

struct sandbox *sandbox_last(
	struct box *b, const char *tenant, int64_t before_ms, const char *before_id)
{
	struct sandbox *s = b->order ? b->order->prev : NULL;
	while (s && (strcmp(s->tenant, tenant) != 0 || s->created_ms > before_ms ||
			    (s->created_ms == before_ms && strcmp(s->id, before_id) >= 0)))
		s = before(s);
	return s;
}

struct sandbox *sandbox_previous(const struct sandbox *s)
{
	struct sandbox *found = before(s);
	while (found && strcmp(found->tenant, s->tenant) != 0)
		found = before(found);
	return found;
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

/* ---- the connection to its init ---- */

static void connected(struct sandbox *s, int error)
{
	sandbox_connected_fn *callback = s->connected;
	s->connected = NULL;
	if (error) {
		init_link_close(s->link);
		s->link = NULL;
	}
	callback(s->connected_arg, s, error);
}

static void handle_frame(void *arg, const struct frame_header *h, const char *payload)
{
	struct sandbox *s = arg;
	struct record record;
	if (h->type == FRAME_PAUSED) {
		sandbox_init_is_still(s);
		return;
	}
	if (h->type != FRAME_RECORD) {
		execution_handle_frame(s, h, payload);
		return;
	}
	if (s->connected && s->tenant && frame_decode_record(payload, h->size, &record) == 0)
		execution_adopt(s, h->tag, &record);
}

static void link_ready(void *arg)
{
	struct sandbox *s = arg;
	if (s->connected)
		connected(s, 0);
}

static void link_lost(void *arg)
{
	struct sandbox *s = arg;
	if (s->connected)
		connected(s, -ECONNRESET);
	else if (s->pooled)
		pool_discard(s);
	else
		sandbox_fail(s, "its init ended");
}

static const struct init_events link_events = {handle_frame, link_ready, link_lost};

struct init_link *sandbox_link_new(struct sandbox *s)
{
	return init_link_new(s->box->loop, &link_events, s);
}

void sandbox_connect(struct sandbox *s, sandbox_connected_fn *callback, void *arg)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s.sock", s->box->config.run_dir, s->id);
	s->connected = callback;
	s->connected_arg = arg;
	if (!s->link)
		s->link = sandbox_link_new(s);
	int r = init_link_connect(s->link, path);
	if (r < 0)
		connected(s, r);
}

static void failure_stored(void *arg, int error)
{
	(void)arg;
	if (error)
		log_error("a sandbox's failure could not be stored");
}

void sandbox_fail(struct sandbox *s, const char *reason)
{
	init_link_close(s->link);
	s->link = NULL;
	/* A builder's work ends; whoever has it hears of that. */
	if (!s->listed && s->tenant)
		execution_end_all(s, EXECUTION_FAILED);
	if (!s->listed || s->doomed || s->status == SANDBOX_STOPPING || s->status == SANDBOX_FAILED)
		return;
	log_warn("a sandbox failed", "sandbox", s->id, "reason", reason);
	snprintf(s->failure, sizeof s->failure, "%s", reason);
	bool known = s->status != SANDBOX_CREATING;
	sandbox_set_status(s, SANDBOX_FAILED);
	tenant_force_charge(s, CHARGE_DISK);
	execution_end_all(s, EXECUTION_FAILED);
	struct error e;
	error_set(&e, ERROR_NOT_RUNNING, "the sandbox has failed: %s", reason);
	files_end_all(s, &e);
	if (!known)
		return;
	event_record(s, EVENT_FAILED, CAUSE_CRASH,
		(struct event_detail[]){{"reason", reason}, {NULL, NULL}});
	sandbox_store(s, SANDBOX_FAILED, failure_stored, NULL);
}

void sandbox_execution_began(struct sandbox *s)
{
	s->running++;
	s->last_active_ms = clock_wall_ms();
	if (s->status == SANDBOX_IDLE)
		sandbox_set_status(s, SANDBOX_RUNNING);
}

void sandbox_execution_ended(struct sandbox *s)
{
	s->running--;
	s->last_active_ms = clock_wall_ms();
	/* The sandbox of a run is only waiting for its end now. */
	if (s->ephemeral && s->executions > 0 && s->running == 0)
		tenant_force_charge(s, CHARGE_NONE);
	if (s->running == 0 && s->status == SANDBOX_RUNNING) {
		sandbox_set_status(s, SANDBOX_IDLE);
		sandbox_clock_changed(s);
	}
}

/* ---- out of memory ---- */

struct oom_note {
	struct box *box;
	char id[ID_SIZE];
};

static void oom_noted(void *arg, const struct warden_reply *reply)
{
	struct oom_note *note = arg;
	struct sandbox *s = NULL;
	HASH_FIND(by_id, note->box->sandboxes, note->id, ID_LEN, s);
	if (s && reply->error == 0 && reply->usage.oom_kills > s->oom_seen)
		s->oom_seen = reply->usage.oom_kills;
	box_check_closed(note->box);
	free(note);
}

void sandbox_note_oom(struct sandbox *s)
{
	struct oom_note *note = calloc(1, sizeof *note);
	if (!note)
		abort();
	note->box = s->box;
	memcpy(note->id, s->id, ID_SIZE);
	warden_link_call(&s->box->warden, WARDEN_USAGE, s->id, NULL, oom_noted, note);
}
