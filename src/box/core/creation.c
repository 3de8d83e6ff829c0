/*
 * Making a sandbox: one from the pool or a new one, its limits, its files, its row. It is written
 * to the store before its creation is acknowledged, so whatever is in the kernel or on disk but not
 * in the store was never acknowledged: the next start may destroy it.
 */
#include "box/core/creation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/core/admission.h"
#include "box/core/pool.h"
#include "box/disk/disks.h"
#include "box/files/files.h"
#include "box/sandbox/brokering.h"
#include "box/sandbox/halt.h"
#include "box/sandbox/lease.h"
#include "box/sandbox/network.h"
#include "box/sandbox/placeholder.h"
#include "box/sandbox/sandbox_row.h"
#include "box/sandbox/status.h"
#include "box/sandbox/turn.h"
#include "box/template/outfit.h"
#include "box/template/startup.h"

#define POOL_MEMORY_MIN (128 << 20)

struct creation {
	struct sandbox *sandbox; /* in the table from the start, so that its name is taken */
	int64_t began_us;
	struct resources booted_with;
	struct build *build; /* of its template; NULL: that is built in */
	struct build_watcher build_hold;
	struct file_spec *files;
	size_t file_count;
	sandbox_created_fn *created;
	void *arg;
	unsigned parts; /* under way: the way to its row, and its network if nothing waits for it */
	bool has_failed;
	struct error error;
};

static void creation_free(struct creation *c)
{
	for (size_t i = 0; i < c->file_count; i++) {
		free((void *)(uintptr_t)c->files[i].path);
		free((void *)(uintptr_t)c->files[i].content);
	}
	free(c->files);
	if (c->build)
		build_unwatch(c->build, &c->build_hold);
	free(c);
}

static void creation_undone(void *arg)
{
	struct creation *c = arg;
	c->created(c->arg, NULL, &c->error);
	creation_free(c);
}

/* The caller is told when the sandbox is removed: its name can be used again. */
static void creation_failed(struct creation *c, const struct error *e)
{
	struct sandbox *s = c->sandbox;
	c->error = *e;
	sandbox_destroy(s, creation_undone, c);
	sandbox_release(s);
}

static void creation_finish(struct creation *c)
{
	struct sandbox *s = c->sandbox;
	struct error e = {0};
	if (s->status != SANDBOX_CREATING || s->ending.doomed) {
		if (s->ending.doomed)
			error_set(&e, ERROR_NOT_RUNNING,
				"the sandbox was deleted while it was being created");
		else
			error_set(&e, ERROR_BOOT_FAILED,
				"the sandbox ended while it was being created");
		creation_failed(c, &e);
		return;
	}
	s->startup_us =
		clock_monotonic_us() - c->began_us; /* with the commit, as the client waits */
	sandbox_set_awake(s);
	usage_begin(s);
	s->box->counters.created_total++;
	c->created(c->arg, s, NULL);
	creation_free(c);
	sandbox_release(s);
}

/* A part has ended; the first failure counts, and is told when all have. */
static void creation_part_ended(struct creation *c, const struct error *e)
{
	if (e && !c->has_failed) {
		c->has_failed = true;
		c->error = *e;
	}
	if (--c->parts > 0)
		return;
	struct error why = c->error;
	if (c->has_failed)
		creation_failed(c, &why);
	else
		creation_finish(c);
}

static void creation_stored(void *arg, int error)
{
	struct creation *c = arg;
	struct error e = {0};
	if (error) {
		c->sandbox->known = false;
		store_error(&e, error, "the sandbox could not be stored");
	}
	creation_part_ended(c, error ? &e : NULL);
}

static void creation_store(struct creation *c)
{
	struct sandbox *s = c->sandbox;
	s->startup_us = clock_monotonic_us() - c->began_us;
	s->known = true;
	sandbox_renew_lease(s);
	event_add(s, EVENT_CREATED, CAUSE_REQUEST,
		(struct event_detail[]){{"template", s->template_name}, {NULL, NULL}});
	event_add(s, EVENT_STARTED, CAUSE_REQUEST,
		(struct event_detail[]){{"bootId", s->boot_id}, {NULL, NULL}});
	sandbox_store(s, SANDBOX_IDLE, creation_stored, c);
}

static void creation_started(void *arg, const struct error *e)
{
	struct creation *c = arg;
	if (e)
		creation_part_ended(c, e);
	else
		creation_store(c);
}

static bool creation_has_start_command(const struct creation *c)
{
	return c->build && c->build->settings.start.len > 0;
}

/* The template's start command runs before the creation is acknowledged. */
static void creation_start(struct creation *c)
{
	struct error e;
	if (!creation_has_start_command(c))
		creation_store(c);
	else if (!startup_begin(c->sandbox, &c->build->settings, false, creation_started, c, &e))
		creation_part_ended(c, &e);
}

static void creation_files_written(void *arg, const struct error *e)
{
	struct creation *c = arg;
	if (e)
		creation_part_ended(c, e);
	else
		creation_start(c);
}

static void creation_write_files(struct creation *c)
{
	c->parts++;
	if (c->file_count == 0)
		creation_start(c);
	else
		files_write(c->sandbox, &(struct files_owner){0}, c->files, c->file_count,
			creation_files_written, c);
}

static bool creation_check_limit(struct creation *c, int error)
{
	struct error e = {0};
	if (!error)
		return true;
	error_set_errno(&e, error, "the limits could not be set");
	e.code = ERROR_BOOT_FAILED;
	creation_failed(c, &e);
	return false;
}

static void creation_networked(void *arg, const struct error *e)
{
	struct creation *c = arg;
	if (e)
		creation_failed(c, e);
	else
		creation_write_files(c);
}

static void creation_networked_beside(void *arg, const struct error *e)
{
	creation_part_ended(arg, e);
}

/* One from the pool was booted without. A start command may need it; files and the row do not. */
static void creation_network(struct creation *c)
{
	struct error e;
	/* Its row has its authority, and may be stored before its network is there. */
	if (brokering_prepare(c->sandbox, &e) < 0) {
		creation_failed(c, &e);
		return;
	}
	if (c->sandbox->network.mode == NETWORK_NONE) {
		creation_write_files(c);
	} else if (creation_has_start_command(c)) {
		network_apply(c->sandbox, creation_networked, c);
	} else {
		c->parts++;
		creation_write_files(c);
		network_apply(c->sandbox, creation_networked_beside, c);
	}
}

static void creation_limited(void *arg, const struct warden_reply *reply)
{
	struct creation *c = arg;
	if (creation_check_limit(c, reply->error))
		creation_network(c);
}

static void creation_set_limits(struct creation *c)
{
	struct sandbox *s = c->sandbox;
	const struct resources *had = &c->booted_with;
	if (had->memory != s->resources.memory || had->cpu != s->resources.cpu ||
		had->pids != s->resources.pids)
		s->box->driver->limits(s->box->driver, s->id, &s->resources, creation_limited, c);
	else
		creation_network(c);
}

static void creation_disk_limited(void *arg, const struct keeper_reply *reply)
{
	struct creation *c = arg;
	if (creation_check_limit(c, reply->error))
		creation_set_limits(c);
}

/*
 * A sandbox from the pool becomes the one that was asked for. The object in the table, which has
 * the same id, takes over its connection; what is left of the other one is freed.
 */
static void creation_adopt(struct creation *c, struct sandbox *booted)
{
	struct sandbox *s = c->sandbox;
	c->booted_with = booted->resources;
	s->init.link = booted->init.link;
	booted->init.link = NULL;
	memcpy(s->boot_id, booted->boot_id, UUID_SIZE);
	init_link_set_arg(s->init.link, s);
	sandbox_free(booted);
	if (c->booted_with.disk != s->resources.disk) {
		struct disk_name disk = disk_of(s);
		s->box->driver->disk_limit(
			s->box->driver, &disk, s->resources.disk, creation_disk_limited, c);
	} else {
		creation_set_limits(c);
	}
}

/* Skips the rest of the work if the sandbox was deleted meanwhile. */
static bool creation_is_wanted(struct creation *c)
{
	struct error e;
	if (!c->sandbox->ending.doomed)
		return true;
	error_set(&e, ERROR_NOT_RUNNING, "the sandbox was deleted while it was being created");
	creation_failed(c, &e);
	return false;
}

static void creation_booted(void *arg, const struct error *e)
{
	struct creation *c = arg;
	if (e)
		creation_failed(c, e);
	else if (creation_is_wanted(c))
		creation_write_files(c);
}

static void creation_installed(void *arg, const struct error *e)
{
	struct creation *c = arg;
	if (e)
		creation_failed(c, e);
	else if (creation_is_wanted(c))
		sandbox_boot(c->sandbox, false, creation_booted, c);
}

/* A small one gets a /dev/shm of its size, which is made at boot. */
static struct sandbox *take_from_pool(struct box *b, const struct resources *r)
{
	return r->memory >= POOL_MEMORY_MIN ? pool_take(b) : NULL;
}

/* No two at the same time: the time is the place in the list, and in what a cursor names. */
static int64_t next_created_ms(const struct box *b, int64_t now)
{
	const struct sandbox *last = b->sandboxes.order ? b->sandboxes.order->prev : NULL;
	return last && last->created_ms >= now ? last->created_ms + 1 : now;
}

/* A copy has the template of what it is a copy of. */
static void settle_begin(struct sandbox *s, const struct sandbox_spec *spec)
{
	const struct sandbox *source = spec->fork ? spec->fork->source : NULL;
	const struct snapshot *from =
		spec->snapshot ? snapshot_find(s->box, spec->tenant, spec->snapshot) : NULL;
	if (source) {
		s->disk.fork_of = spec->fork->disk;
		memcpy(s->parent, source->id, ID_SIZE);
		memcpy(s->snapshot, source->snapshot, ID_SIZE);
		memcpy(s->layer, source->layer, ID_SIZE);
		memcpy(s->disk.volumes, source->disk.volumes, sizeof s->disk.volumes);
		sandbox_set_text(&s->template_name, source->template_name);
	}
	if (from) {
		memcpy(s->snapshot, from->id, ID_SIZE);
		outfit_add_env(s, from->env.data, from->env.len);
		if (!source)
			sandbox_set_text(&s->template_name, from->template_name);
	}
}

static struct sandbox *sandbox_from_spec(
	struct box *b, const struct sandbox_spec *spec, const struct resources *r)
{
	char id[ID_SIZE];
	id_generate(id);
	struct sandbox *s = sandbox_new(b, id);
	fields_copy(&sandbox_model, 0, sizeof spec->settings, &s->record, &spec->settings);
	s->tenant = sandbox_copy_string(spec->tenant);
	s->network.mode = admission_network(b, spec);
	placeholder_settle(s, &s->env);
	s->resources = *r;
	s->last_active_ms = lease_now_ms(b);
	s->created_ms = next_created_ms(b, clock_wall_ms());
	s->turn.taken = true; /* by its creation */
	return s;
}

static void copy_files(struct creation *c, const struct sandbox_spec *spec)
{
	c->files = mem_new_array(spec->file_count + 1, sizeof *c->files);
	for (size_t i = 0; i < spec->file_count; i++) {
		char *content = mem_new(spec->files[i].len + 1);
		memcpy(content, spec->files[i].content, spec->files[i].len);
		c->files[i] = spec->files[i];
		c->files[i].path = sandbox_copy_string(spec->files[i].path);
		c->files[i].content = content;
	}
	c->file_count = spec->file_count;
}

struct sandbox *sandbox_create(struct box *b, const struct sandbox_spec *spec,
	sandbox_created_fn *created, void *arg, struct error *e)
{
	struct resources r = spec->resources;
	struct template *t;
	struct build *build;
	struct warden_volume volumes[WARDEN_VOLUMES_MAX] = {0};
	if (admission_check(b, spec, &r, e) < 0 || volumes_settle(b, spec, volumes, e) < 0 ||
		template_resolve(b, spec->tenant, admission_template(b, spec), &t, &build, e) < 0)
		return NULL;
	struct sandbox *s = sandbox_from_spec(b, spec, &r);
	if (tenant_charge(s, CHARGE_ALL, e) < 0) {
		sandbox_free(s);
		return NULL;
	}
	struct creation *c = mem_new(sizeof *c);
	c->began_us = clock_monotonic_us();
	c->created = created;
	c->arg = arg;
	copy_files(c, spec);
	c->build = build;
	if (build)
		build_hold(build, &c->build_hold);
	c->sandbox = s;
	outfit_sandbox(c->sandbox, spec, t, build);
	settle_begin(c->sandbox, spec);
	if (!spec->fork)
		memcpy(c->sandbox->disk.volumes, volumes, sizeof volumes);
	bool installs = install_check(b, spec, e) > 0;
	bool is_special = spec->snapshot || spec->fork || spec->volume_count > 0;
	struct sandbox *ready = build || installs || is_special ? NULL : take_from_pool(b, &r);
	if (ready)
		memcpy(c->sandbox->id, ready->id, ID_SIZE);
	sandbox_add(c->sandbox);
	if (ready)
		creation_adopt(c, ready);
	else if (installs)
		install_begin(c->sandbox, spec, creation_installed, c);
	else
		sandbox_boot(c->sandbox, false, creation_booted, c);
	pool_refill_later(b);
	return s;
}
