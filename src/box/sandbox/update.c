/*
 * Changes of an existing sandbox: its name, environment and times. A new environment does not
 * affect running processes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/sandbox/brokering.h"
#include "box/sandbox/lease.h"
#include "box/sandbox/object.h"
#include "box/sandbox/placeholder.h"
#include "box/sandbox/sandbox_row.h"

/* The limit of the whole environment, so that it fits into a frame with a command. */
#define ENV_ENTRIES_MAX 1000
#define ENV_BYTES_MAX   (256u * 1024)

/* ---- the environment ---- */

static bool is_named(const char *const *names, const char *entry)
{
	size_t len = strcspn(entry, "=");
	for (; names && *names; names++)
		if (strncmp(*names, entry, len) == 0 && strchr("=", (*names)[len]))
			return true;
	return false;
}

/* Keeps the variables that stay, then appends the new ones. */
static int update_merge_env(
	const struct sandbox *s, const struct sandbox_change *c, struct buf *out, struct error *e)
{
	size_t count = 0;
	for (size_t at = 0; at < s->env.len; at += strlen(s->env.data + at) + 1) {
		const char *entry = s->env.data + at;
		if (!is_named(c->set_env, entry) && !is_named(c->unset_env, entry))
			buf_append(out, entry, strlen(entry) + 1);
	}
	for (size_t i = 0; c->set_env && c->set_env[i]; i++)
		buf_append(out, c->set_env[i], strlen(c->set_env[i]) + 1);
	for (size_t i = 0; i < out->len; i++)
		count += out->data[i] == '\0';
	if (out->failed || count > ENV_ENTRIES_MAX || out->len > ENV_BYTES_MAX)
		return error_set_field(e, ERROR_INVALID_FIELD, "env",
			"the environment may have %d variables and %u bytes", ENV_ENTRIES_MAX,
			ENV_BYTES_MAX);
	const struct strings env = {out->data, out->len};
	return placeholder_check(s->box, s->tenant, &env, e);
}

static void update_placed(void *arg, const struct error *e)
{
	(void)arg;
	if (e) /* the link tells it again */
		log_warn("placeholders are not in force yet", "error", e->message);
}

/* The broker learns of new placeholders. */
static void update_place_secrets(struct sandbox *s)
{
	if (placeholder_settle(s, &s->env) && s->brokered)
		brokering_apply(s, update_placed, NULL);
}

/* ---- the change ---- */

/* A new lease ends so long from now. */
static void update_apply(struct sandbox *s, const struct sandbox_change *c)
{
	struct field_set given = c->given;
	size_t lease =
		(size_t)field_at(&sandbox_model, offsetof(struct sandbox_settings, lease_ms));
	int64_t end = c->lease_ms ? lease_now_ms(s->box) + c->lease_ms : 0;
	bool sooner = end && (s->lease_end_ms == 0 || end < s->lease_end_ms);
	if (sooner && c->lease_extends_only)
		field_set_remove(&given, lease);
	if (field_set_has(&given, lease))
		s->lease_end_ms = end;
	if (c->lease_ends)
		s->lease_end_ms = lease_now_ms(s->box);
	fields_change(&sandbox_model, &given, &s->record, &c->settings);
}

static int update_check(const struct sandbox *s, const struct sandbox_change *c, struct error *e)
{
	if (s->ending.doomed)
		return error_set(e, ERROR_NOT_FOUND, "the sandbox is being deleted");
	if (!s->known)
		return error_set(e, ERROR_NOT_RUNNING, "the sandbox is still being created");
	const struct sandbox *other =
		c->name && c->name[0] ? sandbox_find_named(s->box, s->tenant, c->name) : NULL;
	if (other && other != s)
		return error_set_field(e, ERROR_NAME_TAKEN, "name",
			"a sandbox with the name '%.64s' exists already", c->name);
	return 0;
}

struct updating {
	sandbox_done_fn *done;
	void *arg;
};

static void update_stored(void *arg, int error)
{
	struct updating *u = arg;
	struct error e;
	if (error)
		store_error(&e, error, "the change could not be stored");
	u->done(u->arg, error ? &e : NULL);
	free(u);
}

int sandbox_update(struct sandbox *s, const struct sandbox_change *change, sandbox_done_fn *done,
	void *arg, struct error *e)
{
	autobuf env = {0};
	bool has_env = change->set_env || change->unset_env;
	if (update_check(s, change, e) < 0 || (has_env && update_merge_env(s, change, &env, e) < 0))
		return -1;
	struct updating *u = mem_new(sizeof *u);
	*u = (struct updating){done, arg};
	if (has_env) {
		free(s->env.data);
		s->env = (struct strings){env.data, env.len};
		env = (struct buf){0};
		update_place_secrets(s);
	}
	update_apply(s, change);
	sandbox_clock_changed(s);
	event_add(s, EVENT_UPDATED, CAUSE_REQUEST, NULL);
	sandbox_store(s, s->intent, update_stored, u);
	return 0;
}
