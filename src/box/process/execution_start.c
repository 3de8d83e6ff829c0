/* An execution begins: checks, its START frame, and what of its stdin is there already. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "box/process/execution_core.h"
#include "box/sandbox/default_env.h"
#include "box/sandbox/object.h"
#include "box/sandbox/pause.h"

static bool env_names(const char *const *env, const char *entry)
{
	size_t len = strcspn(entry, "=") + 1;
	for (; env && *env; env++)
		if (strncmp(*env, entry, len) == 0)
			return true;
	return false;
}

/*
 * The caller's variables, then those of the sandbox that they do not replace, then the
 * defaults that neither does. Owned array.
 */
static const char **execution_start_merge_env(const struct sandbox *s, const char *const *env)
{
	const char *defaults[DEFAULT_ENV_MAX];
	size_t default_count = default_env(s, defaults);
	size_t count = default_count, n = 0;
	for (size_t i = 0; env && env[i]; i++)
		count++;
	for (size_t i = 0; i < s->env.len; i++)
		count += s->env.data[i] == '\0';
	const char **merged = mem_new_array(count + 1, sizeof *merged);
	for (size_t i = 0; env && env[i]; i++)
		merged[n++] = env[i];
	for (size_t at = 0; at < s->env.len; at += strlen(s->env.data + at) + 1)
		if (!env_names(env, s->env.data + at))
			merged[n++] = s->env.data + at;
	/* The array was zeroed: NULL ends what is in it. */
	for (size_t i = 0; i < default_count; i++)
		if (!env_names(merged, defaults[i]))
			merged[n++] = defaults[i];
	return merged;
}

static uint32_t start_flags(const struct execution *x, const struct execution_spec *spec)
{
	return (spec->input || spec->open_stdin ? FRAME_START_STDIN : 0u) |
	       (spec->open_stdin ? FRAME_START_OPEN_STDIN : 0u) |
	       (x->terminal ? FRAME_START_TERMINAL : 0u) |
	       (x->interpreter ? FRAME_START_INTERPRETER : 0u) |
	       (x->kind != EXECUTION_COMMAND ? FRAME_START_PROMPT : 0u);
}

static int encode_start(struct execution *x, const struct execution_spec *spec, struct error *e)
{
	const struct sandbox *s = x->sandbox;
	autofree const char **envp = execution_start_merge_env(s, spec->env);
	struct start_request request = {
		.fixed = {.open_files = (uint32_t)s->resources.open_files,
			.timeout_ms = (uint64_t)x->timeout_ms,
			.kind = (uint32_t)x->kind | (x->attended ? KIND_ATTENDED : 0) |
				(x->unlisted ? KIND_UNLISTED : 0),
			.rows = spec->rows,
			.columns = spec->columns,
			.flags = start_flags(x, spec)},
		.user = x->user,
		.cwd = x->cwd,
		.name = x->name,
		.argv = (const char **)(uintptr_t)spec->argv,
		.envp = envp,
	};
	memcpy(request.fixed.execution, x->id, ID_SIZE);
	int r = frame_encode_start(init_link_buffer(s->init.link), x->tag, &request);
	if (r == -E2BIG)
		return error_set_field(e, ERROR_INVALID_FIELD, "command",
			"command and environment together are longer than %u bytes or %u entries",
			FRAME_MAX_PAYLOAD, FRAME_MAX_STRINGS);
	return r < 0 ? error_set_errno(e, r, "cannot start the command") : 0;
}

static void remember_command(struct execution *x, const char *const *argv)
{
	for (; *argv && x->command.len < FRAME_MAX_COMMAND; argv++)
		buf_append(&x->command, *argv, strlen(*argv) + 1);
}

/* Counts ended executions whose output waits for a reader: it takes memory of init and front. */
static unsigned count_unread(const struct sandbox *s)
{
	unsigned count = 0;
	const struct execution *x;
	DL_FOREACH (s->processes.live, x)
		count += execution_has_ended(x) && !execution_is_drained(x);
	return count;
}

/* Keeps the environment of background processes, for clients that list them. */
static void remember_env(struct execution *x, const char *const *env)
{
	for (; x->kind != EXECUTION_COMMAND && env && *env; env++) {
		size_t size = strlen(*env) + 1;
		if (x->env.len + size <= EXECUTION_ENV_MAX)
			buf_append(&x->env, *env, size);
	}
}

static int check_startable(struct sandbox *s, struct error *e)
{
	unsigned busy = s->running - s->files.inner + count_unread(s);
	if (busy >= s->box->config.executions_per_sandbox)
		return error_set(e, ERROR_QUOTA_EXCEEDED,
			"the sandbox runs %u commands already, the most that is allowed", busy);
	return sandbox_wake(s, e);
}

static void execution_discard(struct execution *x)
{
	DL_DELETE(x->sandbox->processes.live, x);
	execution_count(x, -1);
	x->sandbox = NULL;
	x->status = EXECUTION_FAILED;
	x->committed = true;
	execution_free_if_unused(x);
}

static void take_spec(struct execution *x, const struct execution_spec *spec)
{
	const struct sandbox *s = x->sandbox;
	x->user = mem_copy_text(spec->user ? spec->user : s->user);
	x->cwd = mem_copy_text(spec->cwd ? spec->cwd : s->workdir);
	x->name = mem_copy_text(spec->name ? spec->name : "");
	x->own_cwd = spec->cwd != NULL;
	x->unlisted |= spec->unlisted;
	x->kind = spec->kind;
	x->attended = spec->attended;
	x->terminal = spec->terminal;
	x->timeout_ms = spec->timeout_ms ? spec->timeout_ms : x->interpreter ? 0 : s->execution_ms;
	x->input_open = spec->open_stdin || spec->terminal;
	x->input_closed = !spec->input && !x->input_open;
	remember_command(x, spec->argv);
	remember_env(x, spec->env);
}

static int execution_start_start(struct sandbox *s, const struct execution_spec *spec,
	bool interpreter, struct execution **ret, struct error *e)
{
	struct execution *x = execution_new(s, interpreter);
	id_generate(x->id);
	x->tag = execution_sign(s, x->id);
	take_spec(x, spec);
	execution_place_outputs(x);
	if (encode_start(x, spec, e) < 0) {
		execution_discard(x);
		return -1;
	}
	if (spec->input) {
		x->input_end = spec->input_len;
		buf_append(&x->input, spec->input, spec->input_len);
		execution_input_push(x);
	}
	if (!x->unlisted) {
		execution_index(x);
		s->executions++;
		s->box->counters.executions_total++;
	}
	execution_flush(x);
	*ret = x;
	return 0;
}

int execution_start(struct sandbox *s, const struct execution_spec *spec, struct execution **ret,
	struct error *e)
{
	return check_startable(s, e) < 0 ? -1 : execution_start_start(s, spec, false, ret, e);
}

int execution_start_interpreter(struct sandbox *s, const struct execution_spec *spec,
	struct execution **ret, struct error *e)
{
	return sandbox_wake(s, e) < 0 ? -1 : execution_start_start(s, spec, true, ret, e);
}
