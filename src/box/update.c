/*
 * What can be changed of a sandbox that is there: how it is called, its environment, its times.
 * What runs already is not touched by a new environment.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "box/core.h"

/* Of the whole environment, so that it fits into a frame with a command. */
#define ENV_ENTRIES_MAX 1000
#define ENV_BYTES_MAX   (256u * 1024)

const struct sandbox_change sandbox_no_change = {
	.idle_ms = SANDBOX_UNCHANGED,
	.execution_ms = SANDBOX_UNCHANGED,
	.paused_timeout_ms = SANDBOX_UNCHANGED,
	.lease_ms = SANDBOX_UNCHANGED,
	.on_idle = SANDBOX_UNCHANGED,
	.on_lease = SANDBOX_UNCHANGED,
	.auto_resume = SANDBOX_UNCHANGED,
};

/* ---- the environment ---- */

static bool is_named(const char *const *names, const char *entry)
{
	size_t len = strcspn(entry, "=");
	for (; names && *names; names++)
		if (strncmp(*names, entry, len) == 0 && strchr("=", (*names)[len]))
			return true;
	return false;
}

/* What is there and stays, then what is new. */
static int merge_env(
	const struct sandbox *s, const struct sandbox_change *c, struct buf *out, struct error *e)
{
	size_t count = 0;
	for (size_t at = 0; at < s->env.len; at += strlen(s->env.data + at) + 1) {
		const char *entry = s->env.data + at;
		if (!is_named(c->env, entry) && !is_named(c->unset, entry))
			buf_append(out, entry, strlen(entry) + 1);
	}
	for (size_t i = 0; c->env && c->env[i]; i++)
		buf_append(out, c->env[i], strlen(c->env[i]) + 1);
	for (size_t i = 0; i < out->len; i++)
		count += out->data[i] == '\0';
	if (out->failed || count > ENV_ENTRIES_MAX || out->len > ENV_BYTES_MAX)
		return error_set_field(e, ERROR_INVALID_FIELD, "env",
			"the environment may have %d variables and %u bytes", ENV_ENTRIES_MAX,
			ENV_BYTES_MAX);
	return 0;
}

/* ---- the change ---- */

static void set_text(char **at, const char *text)
{
	if (!text)
		return;
	free(*at);
	*at = sandbox_copy_string(text);
}

static void set_number(int64_t *at, int64_t number)
{
	if (number != SANDBOX_UNCHANGED)
		*at = number;
}

static void set_lease(struct sandbox *s, const struct sandbox_change *c)
{
	int64_t end = c->lease_ms ? clock_wall_ms() + c->lease_ms : 0;
	bool sooner = end && (s->lease_end_ms == 0 || end < s->lease_end_ms);
	if (c->lease_ms == SANDBOX_UNCHANGED || (sooner && c->lease_extends_only))
		return;
	s->lease_ms = c->lease_ms;
	s->lease_end_ms = end;
}

static void apply(struct sandbox *s, const struct sandbox_change *c)
{
	set_text(&s->name, c->name);
	set_text(&s->description, c->description);
	set_text(&s->metadata, c->metadata);
	set_number(&s->idle_ms, c->idle_ms);
	set_number(&s->execution_ms, c->execution_ms);
	set_number(&s->paused_timeout_ms, c->paused_timeout_ms);
	set_lease(s, c);
	if (c->on_idle != SANDBOX_UNCHANGED)
		s->on_idle = (enum sandbox_expiry)c->on_idle;
	if (c->on_lease != SANDBOX_UNCHANGED)
		s->on_lease = (enum sandbox_expiry)c->on_lease;
	if (c->auto_resume != SANDBOX_UNCHANGED)
		s->auto_resume = c->auto_resume;
}

static int check(const struct sandbox *s, const struct sandbox_change *c, struct error *e)
{
	if (s->doomed)
		return error_set(e, ERROR_NOT_FOUND, "the sandbox is being deleted");
	if (!s->known)
		return error_set(e, ERROR_NOT_RUNNING, "the sandbox is still being created");
	const struct sandbox *other =
		c->name && c->name[0] ? admission_named(s->box, s->tenant, c->name) : NULL;
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
		error_set(&e, ERROR_INTERNAL, "the change could not be stored");
	u->done(u->arg, error ? &e : NULL);
	free(u);
}

int sandbox_update(struct sandbox *s, const struct sandbox_change *change, sandbox_done_fn *done,
	void *arg, struct error *e)
{
	autobuf env = {0};
	bool has_env = change->env || change->unset;
	if (check(s, change, e) < 0 || (has_env && merge_env(s, change, &env, e) < 0))
		return -1;
	struct updating *u = malloc(sizeof *u);
	if (!u)
		abort();
	*u = (struct updating){done, arg};
	if (has_env) {
		buf_finish(&s->env);
		s->env = buf_take(&env);
	}
	apply(s, change);
	sandbox_clock_changed(s);
	event_record(s, EVENT_UPDATED, CAUSE_REQUEST, NULL);
	sandbox_store(s, s->intent, update_stored, u);
	return 0;
}
