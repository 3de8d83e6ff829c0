/*
 * Sandboxes: their creation, their place in the tables, their idle clock, their end.
 *
 * A sandbox is booted first and written to the store before its creation is acknowledged; its row
 * is deleted before its disk. So whatever is in the kernel or on disk but not in the store was
 * never acknowledged, or is being deleted: the next start may destroy it.
 */
#include "box/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"

#define POOL_MEMORY_MIN (128 << 20)

/* ---- status ---- */

static const char *const status_names[SANDBOX_STATUS_COUNT] = {
	"creating", "idle", "running", "stopping", "failed", "deleted"};

#define MOVE(to) (1u << SANDBOX_##to)

/* From where one may go where. */
static const unsigned allowed_moves[SANDBOX_STATUS_COUNT] = {
	[SANDBOX_CREATING] = MOVE(IDLE) | MOVE(RUNNING) | MOVE(STOPPING) | MOVE(FAILED),
	[SANDBOX_IDLE] = MOVE(RUNNING) | MOVE(STOPPING) | MOVE(FAILED),
	[SANDBOX_RUNNING] = MOVE(IDLE) | MOVE(STOPPING) | MOVE(FAILED),
	[SANDBOX_STOPPING] = MOVE(DELETED),
	[SANDBOX_FAILED] = MOVE(STOPPING),
	[SANDBOX_DELETED] = 0,
};

const char *sandbox_status_name(enum sandbox_status status)
{
	return status_names[status];
}

void sandbox_set_status(struct sandbox *s, enum sandbox_status status)
{
	if (!(allowed_moves[s->status] & (1u << status))) {
		log_error("a sandbox cannot move like this", "sandbox", s->id, "from",
			status_names[s->status], "to", status_names[status]);
		return;
	}
	s->status = status;
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
	if (s->running == 0 && s->status == SANDBOX_RUNNING) {
		sandbox_set_status(s, SANDBOX_IDLE);
		sandbox_check_idle(s->box);
	}
}

/* ---- memory and tables ---- */

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
	init_link_close(s->link);
	if (s->listed) {
		HASH_DELETE(by_id, s->box->sandboxes, s);
		DL_DELETE(s->box->order, s);
		s->box->counters.sandboxes--;
	}
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

static char *copy_string(const char *text)
{
	char *copy = strdup(text ? text : "");
	if (!copy)
		abort();
	return copy;
}

struct sandbox *sandbox_from_row(struct box *b, const struct sandbox_row *row)
{
	struct sandbox *s = sandbox_new(b, row->id);
	s->tenant = copy_string(row->tenant);
	s->name = copy_string(row->name);
	s->description = copy_string(row->description);
	s->template_name = copy_string(row->template_name);
	s->user = copy_string(row->user);
	s->workdir = copy_string(row->workdir);
	s->project = copy_string(row->project);
	s->metadata = copy_string(row->metadata);
	buf_append(&s->env, row->env, row->env_len);
	s->resources = (struct resources){row->memory, row->cpu, row->pids, row->open_files};
	s->idle_ms = row->idle_ms;
	s->execution_ms = row->execution_ms;
	s->created_ms = row->created_ms;
	s->startup_us = row->startup_us;
	s->executions = (uint64_t)row->executions;
	s->ephemeral = row->ephemeral;
	s->last_active_ms = clock_wall_ms(); /* a restart is not idleness */
	snprintf(s->failure, sizeof s->failure, "%s", row->failure);
	return s;
}

static void store_sandbox(struct sandbox *s, store_done_fn *done, void *arg)
{
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
		.idle_ms = s->idle_ms,
		.execution_ms = s->execution_ms,
		.created_ms = s->created_ms,
		.startup_us = s->startup_us,
		.executions = (int64_t)s->executions,
		.ephemeral = s->ephemeral,
		.failure = s->failure,
	};
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

static int64_t expires_ms(const struct sandbox *s)
{
	if (s->idle_ms == 0 || s->running > 0 || s->readers > 0 || s->status != SANDBOX_IDLE)
		return 0;
	return s->last_active_ms + s->idle_ms;
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
		.failure = s->failure,
		.resources = s->resources,
		.idle_ms = s->idle_ms,
		.execution_ms = s->execution_ms,
		.created_ms = s->created_ms,
		.last_active_ms = s->last_active_ms,
		.expires_ms = expires_ms(s),
		.startup_us = s->startup_us,
		.executions = s->executions,
	};
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

void sandbox_connect(struct sandbox *s, sandbox_connected_fn *callback, void *arg)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s.sock", s->box->config.run_dir, s->id);
	s->connected = callback;
	s->connected_arg = arg;
	int r = init_link_open(&s->link, s->box->loop, path, &link_events, s);
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
	if (!s->listed || s->status == SANDBOX_STOPPING || s->status == SANDBOX_FAILED)
		return;
	log_warn("a sandbox failed", "sandbox", s->id, "reason", reason);
	snprintf(s->failure, sizeof s->failure, "%s", reason);
	bool known = s->status != SANDBOX_CREATING;
	sandbox_set_status(s, SANDBOX_FAILED);
	execution_end_all(s, EXECUTION_FAILED);
	if (known)
		store_sandbox(s, failure_stored, NULL);
}

/* ---- creation ---- */

struct creation {
	struct sandbox *sandbox; /* in the table from the start, so that its name is taken */
	int64_t began_us;
	struct file_spec *files;
	size_t file_count;
	sandbox_created_fn *created;
	void *arg;
};

static void creation_free(struct creation *c)
{
	for (size_t i = 0; i < c->file_count; i++) {
		free((void *)(uintptr_t)c->files[i].path);
		free((void *)(uintptr_t)c->files[i].content);
	}
	free(c->files);
	free(c);
}

static void creation_failed(struct creation *c, const struct error *e)
{
	struct sandbox *s = c->sandbox;
	s->being_created = false;
	c->created(c->arg, NULL, e);
	creation_free(c);
	sandbox_destroy(s, NULL, NULL);
}

static void creation_stored(void *arg, int error)
{
	struct creation *c = arg;
	struct sandbox *s = c->sandbox;
	struct error e = {0};
	if (error || s->status != SANDBOX_CREATING || s->doomed) {
		error_set(&e,
			error       ? ERROR_INTERNAL
			: s->doomed ? ERROR_NOT_RUNNING
				    : ERROR_BOOT_FAILED,
			"%s",
			error       ? "the sandbox could not be stored"
			: s->doomed ? "the sandbox was deleted while it was being created"
				    : "the sandbox ended while it was being created");
		creation_failed(c, &e);
		return;
	}
	s->being_created = false;
	s->startup_us =
		clock_monotonic_us() - c->began_us; /* with the commit, as the client waits */
	sandbox_set_status(s, SANDBOX_IDLE);
	s->last_active_ms = clock_wall_ms();
	s->box->counters.created_total++;
	sandbox_check_idle(s->box);
	c->created(c->arg, s, NULL);
	creation_free(c);
}

static void creation_store(struct creation *c)
{
	c->sandbox->startup_us = clock_monotonic_us() - c->began_us;
	store_sandbox(c->sandbox, creation_stored, c);
}

static void creation_files_written(void *arg, const struct error *e)
{
	struct creation *c = arg;
	if (e)
		creation_failed(c, e);
	else
		creation_store(c);
}

static void creation_write_files(struct creation *c)
{
	if (c->file_count == 0)
		creation_store(c);
	else
		files_write(c->sandbox, &(struct files_owner){0}, c->files, c->file_count,
			creation_files_written, c);
}

static void creation_limited(void *arg, const struct warden_reply *reply)
{
	struct creation *c = arg;
	struct error e = {0};
	if (reply->error) {
		error_set_errno(&e, reply->error, "the limits could not be set");
		e.code = ERROR_BOOT_FAILED;
		creation_failed(c, &e);
		return;
	}
	creation_write_files(c);
}

/*
 * A booted sandbox becomes the one that was asked for. The object in the table, which has the same
 * id, takes over its connection; what is left of the other one is freed.
 */
static void creation_adopt(struct creation *c, struct sandbox *booted)
{
	struct sandbox *s = c->sandbox;
	struct resources had = booted->resources;
	s->link = booted->link;
	booted->link = NULL;
	init_link_set_arg(s->link, s);
	sandbox_free(booted);
	if (had.memory != s->resources.memory || had.cpu != s->resources.cpu ||
		had.pids != s->resources.pids)
		warden_link_call(
			&s->box->warden, WARDEN_LIMITS, s->id, &s->resources, creation_limited, c);
	else
		creation_write_files(c);
}

static void creation_booted(void *arg, struct sandbox *booted, const struct error *e)
{
	struct creation *c = arg;
	if (booted)
		creation_adopt(c, booted);
	else
		creation_failed(c, e);
}

static struct sandbox *named(struct box *b, const char *tenant, const char *name)
{
	struct sandbox *s;
	DL_FOREACH (b->order, s)
		if (strcmp(s->tenant, tenant) == 0 && strcmp(s->name, name) == 0)
			return s;
	return NULL;
}

/* The sandbox of a run that has been answered is only waiting for its end. */
static bool is_ending(const struct sandbox *s)
{
	return s->status == SANDBOX_STOPPING ||
	       (s->ephemeral && s->executions > 0 && s->running == 0);
}

static int check_quota(struct box *b, const char *tenant, struct error *e)
{
	unsigned count = 0;
	struct sandbox *s;
	DL_FOREACH (b->order, s)
		count += strcmp(s->tenant, tenant) == 0 && !is_ending(s);
	if (count >= b->config.sandboxes_per_tenant)
		return error_set(e, ERROR_QUOTA_EXCEEDED, "the limit of %u sandboxes is reached",
			b->config.sandboxes_per_tenant);
	return 0;
}

static void format_count(int64_t count, char out[UNITS_TEXT_SIZE])
{
	snprintf(out, UNITS_TEXT_SIZE, "%lld", (long long)count);
}

static int check_resource(const char *field, int64_t value, int64_t max,
	void (*format)(int64_t amount, char out[UNITS_TEXT_SIZE]), struct error *e)
{
	char text[UNITS_TEXT_SIZE];
	if (value <= max)
		return 0;
	format(max, text);
	return error_set_field(e, ERROR_INVALID_FIELD, field,
		"\"%s\" is above this server's maximum of %s", field, text);
}

/* Zero stands for the default; above the maximum is an error, not a silent cut. */
static int settle_resources(struct box *b, struct resources *r, struct error *e)
{
	const struct resources *d = &b->config.defaults, *m = &b->config.maxima;
	r->memory = r->memory ? r->memory : d->memory;
	r->cpu = r->cpu ? r->cpu : d->cpu;
	r->pids = r->pids ? r->pids : d->pids;
	r->open_files = r->open_files ? r->open_files : d->open_files;
	if (check_resource("resources.memory", r->memory, m->memory, units_format_size, e) < 0 ||
		check_resource("resources.cpu", r->cpu, m->cpu, units_format_millicores, e) < 0 ||
		check_resource("resources.pids", r->pids, m->pids, format_count, e) < 0 ||
		check_resource(
			"resources.openFiles", r->open_files, m->open_files, format_count, e) < 0)
		return -1;
	return 0;
}

static int check_spec(
	struct box *b, const struct sandbox_spec *spec, struct resources *r, struct error *e)
{
	if (b->closing)
		return error_set(e, ERROR_UNAVAILABLE, "the server is shutting down");
	struct template *t;
	struct build *build;
	if (template_resolve(b, spec->tenant, spec->template_name, &t, &build, e) < 0)
		return -1;
	if (settle_resources(b, r, e) < 0)
		return -1;
	if (spec->name && spec->name[0] && named(b, spec->tenant, spec->name))
		return error_set_field(e, ERROR_NAME_TAKEN, "name",
			"a sandbox with the name '%.64s' exists already", spec->name);
	return check_quota(b, spec->tenant, e);
}

/* No two at the same time: the time is the place in the list, and in what a cursor names. */
static int64_t next_created_ms(const struct box *b, int64_t now)
{
	const struct sandbox *last = b->order ? b->order->prev : NULL;
	return last && last->created_ms >= now ? last->created_ms + 1 : now;
}

static struct sandbox *sandbox_from_spec(
	struct box *b, const struct sandbox_spec *spec, const struct resources *r)
{
	char id[ID_SIZE];
	id_generate(id);
	struct sandbox *s = sandbox_new(b, id);
	s->tenant = copy_string(spec->tenant);
	s->name = copy_string(spec->name);
	s->description = copy_string(spec->description);
	s->template_name = copy_string(spec->template_name ? spec->template_name : "base");
	s->user = copy_string(spec->user ? spec->user : "user");
	s->workdir = copy_string(spec->workdir);
	s->project = copy_string(spec->project);
	s->metadata = copy_string(spec->metadata ? spec->metadata : "{}");
	for (size_t i = 0; spec->env && spec->env[i]; i++)
		buf_append(&s->env, spec->env[i], strlen(spec->env[i]) + 1);
	s->resources = *r;
	s->idle_ms = spec->idle_ms;
	s->execution_ms = spec->execution_ms;
	s->ephemeral = spec->ephemeral;
	s->last_active_ms = clock_wall_ms();
	s->created_ms = next_created_ms(b, s->last_active_ms);
	s->being_created = true;
	return s;
}

static void copy_files(struct creation *c, const struct sandbox_spec *spec)
{
	c->files = calloc(spec->file_count + 1, sizeof *c->files);
	if (!c->files)
		abort();
	for (size_t i = 0; i < spec->file_count; i++) {
		char *content = malloc(spec->files[i].len + 1);
		if (!content)
			abort();
		memcpy(content, spec->files[i].content, spec->files[i].len);
		c->files[i] = spec->files[i];
		c->files[i].path = copy_string(spec->files[i].path);
		c->files[i].content = content;
	}
	c->file_count = spec->file_count;
}

int sandbox_create(struct box *b, const struct sandbox_spec *spec, sandbox_created_fn *created,
	void *arg, struct error *e)
{
	struct resources r = spec->resources;
	if (check_spec(b, spec, &r, e) < 0)
		return -1;
	struct creation *c = calloc(1, sizeof *c);
	if (!c)
		abort();
	c->began_us = clock_monotonic_us();
	c->created = created;
	c->arg = arg;
	copy_files(c, spec);
	c->sandbox = sandbox_from_spec(b, spec, &r);
	/* A small one gets a /dev/shm of its size, which is made at boot. */
	struct sandbox *ready = r.memory >= POOL_MEMORY_MIN ? pool_take(b) : NULL;
	if (ready)
		memcpy(c->sandbox->id, ready->id, ID_SIZE);
	sandbox_add(c->sandbox);
	if (ready)
		creation_adopt(c, ready);
	else
		pool_boot(b, c->sandbox->id, &r, creation_booted, c);
	pool_refill(b);
	return 0;
}

/* ---- the end ---- */

struct sandbox_waiter {
	struct sandbox_waiter *next;
	void (*done)(void *arg);
	void *arg;
};

static void tell_waiters(struct sandbox_waiter *w)
{
	while (w) {
		struct sandbox_waiter *next = w->next;
		w->done(w->arg);
		free(w);
		w = next;
	}
}

/* Nobody waits for this: what is left when we die is destroyed by the next start. */
static void traces_removed(void *arg, const struct warden_reply *reply)
{
	if (reply->error)
		log_error("cannot remove what a sandbox left", "sandbox", reply->id, "error",
			strerror(reply->error));
	box_check_closed(arg);
}

static void end_if_dead(struct sandbox *s)
{
	struct box *b = s->box;
	struct sandbox_waiter *waiters = s->waiters;
	if (!s->row_gone || !s->killed)
		return;
	sandbox_set_status(s, SANDBOX_DELETED);
	b->counters.destroyed_total++;
	warden_link_call(&b->warden, WARDEN_DESTROY, s->id, NULL, traces_removed, b);
	sandbox_free(s);
	tell_waiters(waiters);
	pool_refill(b);
}

static void kill_answered(void *arg, const struct warden_reply *reply)
{
	struct sandbox *s = arg;
	if (reply->error && !s->box->closing) {
		/* Something will not die yet. Nothing is forgotten: we ask until it does. */
		log_error("cannot kill a sandbox yet", "sandbox", s->id, "error",
			strerror(reply->error));
		warden_link_call(&s->box->warden, WARDEN_KILL, s->id, NULL, kill_answered, s);
		return;
	}
	s->killed = true;
	end_if_dead(s);
}

static void row_deleted(void *arg, int error)
{
	struct sandbox *s = arg;
	if (error)
		log_error("a sandbox's row could not be deleted", "sandbox", s->id);
	s->row_gone = true;
	end_if_dead(s);
}

void sandbox_destroy(struct sandbox *s, void (*done)(void *arg), void *arg)
{
	if (done) {
		struct sandbox_waiter *w = calloc(1, sizeof *w);
		if (!w)
			abort();
		*w = (struct sandbox_waiter){s->waiters, done, arg};
		s->waiters = w;
	}
	s->doomed = true;
	if (s->status == SANDBOX_STOPPING || s->being_created)
		return;
	sandbox_set_status(s, SANDBOX_STOPPING);
	execution_end_all(s, EXECUTION_CANCELLED);
	init_link_close(s->link);
	s->link = NULL;
	/* Side by side; the disk goes only after both, so a crash in between loses no file. */
	warden_link_call(&s->box->warden, WARDEN_KILL, s->id, NULL, kill_answered, s);
	store_delete_sandbox(s->box->store, s->id, row_deleted, s);
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

/* ---- idleness ---- */

static void idle_timer_fired(uv_timer_t *timer)
{
	struct box *b = timer->data;
	int64_t now = clock_wall_ms();
	struct sandbox *s, *next;
	DL_FOREACH_SAFE (b->order, s, next) {
		int64_t expires = expires_ms(s);
		if (expires == 0 || expires > now)
			continue;
		log_info("a sandbox was idle for too long", "sandbox", s->id);
		sandbox_destroy(s, NULL, NULL);
	}
	sandbox_check_idle(b);
}

/* One timer for all: it fires for the earliest, and looks at everybody then. */
void sandbox_check_idle(struct box *b)
{
	int64_t earliest = 0, now = clock_wall_ms();
	struct sandbox *s;
	if (b->closing)
		return;
	DL_FOREACH (b->order, s) {
		int64_t expires = expires_ms(s);
		if (expires && (earliest == 0 || expires < earliest))
			earliest = expires;
	}
	if (earliest == 0)
		uv_timer_stop(&b->idle_timer);
	else
		uv_timer_start(&b->idle_timer, idle_timer_fired,
			earliest > now ? (uint64_t)(earliest - now) : 0, 0);
}
