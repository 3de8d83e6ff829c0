/*
 * The steps of a build, one after the other. Each has a key, made of the key before it and of what
 * it says; a step whose layer is there already is not done again, and neither are those before it.
 *
 *     cached layer or the template → builder → step → layer kept → next step → … → trial of the
 * start command → ready
 */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "box/build_job.h"
#include "box/build_step.h"
#include "box/start.h"

#define STEPS_MAX          500
#define STRINGS_MAX        (1u << 20) /* of a spec, together */
#define TIMEOUT_DEFAULT_MS (INT64_C(3600) * 1000)
#define TIMEOUT_MAX_MS     (INT64_C(24) * 3600 * 1000)

static void next_step(struct build_job *job);

/* ---- the spec, checked and copied ---- */

struct copier {
	struct scratch *memory;
	size_t bytes;
};

static const char *copy_text(struct copier *c, const char *text)
{
	if (!text)
		return NULL;
	size_t size = strlen(text) + 1;
	char *copy = scratch_alloc(c->memory, size);
	memcpy(copy, text, size);
	c->bytes += size;
	return copy;
}

static const char *const *copy_list(struct copier *c, const char *const *list)
{
	size_t count = 0;
	if (!list)
		return NULL;
	while (list[count])
		count++;
	const char **copy = scratch_alloc(c->memory, (count + 1) * sizeof *copy);
	for (size_t i = 0; i < count; i++)
		copy[i] = copy_text(c, list[i]);
	c->bytes += count * sizeof *copy;
	return copy;
}

static void copy_spec(struct copier *c, const struct build_spec *from, struct build_spec *to)
{
	struct build_step *steps = scratch_alloc(c->memory, (from->step_count + 1) * sizeof *steps);
	for (size_t i = 0; i < from->step_count; i++) {
		steps[i] = from->steps[i];
		steps[i].argv = copy_list(c, from->steps[i].argv);
		steps[i].env = copy_list(c, from->steps[i].env);
		steps[i].user = copy_text(c, from->steps[i].user);
		steps[i].context = copy_text(c, from->steps[i].context);
		steps[i].source = copy_text(c, from->steps[i].source);
		steps[i].path = copy_text(c, from->steps[i].path);
	}
	*to = *from;
	to->steps = steps;
	to->from = copy_text(c, from->from);
	to->start = copy_list(c, from->start);
	to->ready = copy_text(c, from->ready);
	to->entrypoint = copy_list(c, from->entrypoint);
	to->command = copy_list(c, from->command);
	to->ports = copy_list(c, from->ports);
}

static int bad_step(struct error *e, size_t index, const char *what)
{
	char field[32];
	snprintf(field, sizeof field, "steps[%zu]", index);
	return error_set_field(e, ERROR_INVALID_FIELD, field, "step %zu %s", index + 1, what);
}

static int check_step(
	struct build_job *job, const struct build_step *step, size_t index, struct error *e)
{
	struct box *b = job->catalogue->box;
	switch (step->kind) {
	case BUILD_RUN:
		return step->argv && step->argv[0] && step->argv[0][0]
			       ? 0
			       : bad_step(e, index, "has no command");
	case BUILD_COPY:
		if (!step->path || !step->path[0] || !step->context)
			return bad_step(e, index, "needs a path and a context");
		if (!context_exists(b, job->build->tenant, step->context))
			return error_set_field(e, ERROR_NOT_FOUND, "steps",
				"the files of step %zu were not uploaded, or are gone", index + 1);
		return 0;
	case BUILD_ENV:
		for (const char *const *env = step->env; env && *env; env++)
			if ((*env)[0] == '=' || !strchr(*env, '='))
				return bad_step(e, index, "has a variable that is not NAME=VALUE");
		return step->env ? 0 : bad_step(e, index, "has no variables");
	case BUILD_WORKDIR:
		return step->path && step->path[0] ? 0 : bad_step(e, index, "has no path");
	case BUILD_USER:
		return step->user && step->user[0] ? 0 : bad_step(e, index, "has no user");
	default:
		return bad_step(e, index, "is of no kind that there is");
	}
}

static int check_spec(struct build_job *job, const struct build_spec *spec, struct error *e)
{
	struct copier copier = {.memory = &job->memory};
	if (spec->step_count > STEPS_MAX)
		return error_set_field(
			e, ERROR_INVALID_FIELD, "steps", "a build has %d steps at most", STEPS_MAX);
	if (spec->timeout_ms > TIMEOUT_MAX_MS)
		return error_set_field(
			e, ERROR_INVALID_FIELD, "timeout", "a build may take 24 hours at most");
	copy_spec(&copier, spec, &job->spec);
	if (copier.bytes > STRINGS_MAX)
		return error_set_field(e, ERROR_INVALID_FIELD, "steps",
			"the steps are longer than %u bytes together", STRINGS_MAX);
	for (size_t i = 0; i < spec->step_count; i++)
		if (check_step(job, &job->spec.steps[i], i, e) < 0)
			return -1;
	return 0;
}

/* ---- keys ---- */

static void hash_text(crypto_hash_sha256_state *state, const char *text)
{
	/* With its NUL, and NULL unlike "". */
	if (text)
		crypto_hash_sha256_update(state, (const unsigned char *)text, strlen(text) + 1);
	else
		crypto_hash_sha256_update(state, (const unsigned char *)"\1", 2);
}

static void hash_list(crypto_hash_sha256_state *state, const char *const *list)
{
	for (; list && *list; list++)
		hash_text(state, *list);
	hash_text(state, NULL);
}

static void end_key(crypto_hash_sha256_state *state, char out[LAYER_KEY_LEN + 1])
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	crypto_hash_sha256_final(state, hash);
	sodium_bin2hex(out, LAYER_KEY_LEN + 1, hash, sizeof hash);
}

static void make_keys(struct build_job *job)
{
	const struct build_spec *spec = &job->spec;
	const char *before = job->from ? job->from->id : "base";
	job->keys = calloc(spec->step_count + 1, sizeof *job->keys);
	if (!job->keys)
		abort();
	for (size_t i = 0; i < spec->step_count; i++) {
		const struct build_step *step = &spec->steps[i];
		crypto_hash_sha256_state state;
		char numbers[32];
		crypto_hash_sha256_init(&state);
		hash_text(&state, before);
		snprintf(numbers, sizeof numbers, "%d %d", (int)step->kind, step->mode);
		hash_text(&state, numbers);
		hash_list(&state, step->argv);
		hash_list(&state, step->env);
		hash_text(&state, step->user);
		hash_text(&state, step->context);
		hash_text(&state, step->source);
		hash_text(&state, step->path);
		end_key(&state, job->keys[i]);
		before = job->keys[i];
	}
}

/* Whether it changes files. */
static bool makes_layer(const struct build_step *step)
{
	return step->kind == BUILD_RUN || step->kind == BUILD_COPY || step->kind == BUILD_WORKDIR;
}

/* How many steps from the first on need not be done, because their result is there. */
static size_t count_cached(struct build_job *job)
{
	const struct build_spec *spec = &job->spec;
	size_t usable = 0;
	while (usable < spec->step_count && !spec->steps[usable].force)
		usable++;
	for (size_t n = spec->no_cache ? 0 : usable; n > 0; n--) {
		struct layer *layer =
			makes_layer(&spec->steps[n - 1])
				? layer_cached(job->catalogue, job->build->tenant, job->keys[n - 1])
				: NULL;
		if (layer && strcmp(layer->root, job->root) == 0) {
			memcpy(job->layer, layer->id, ID_SIZE);
			return n;
		}
	}
	return 0;
}

/* ---- the beginning ---- */

int build_start(struct build *build, const struct build_spec *spec, struct error *e)
{
	struct template *t;
	struct build *from;
	struct box *b = build->catalogue->box;
	if (build->job || build->status != BUILD_WAITING)
		return error_set(e, ERROR_NOT_READY, "the build was started already");
	if (template_resolve(b, build->tenant, spec->from, &t, &from, e) < 0)
		return -1;
	struct build_job *job =
		build_job_new(build, spec->timeout_ms > 0 ? spec->timeout_ms : TIMEOUT_DEFAULT_MS);
	if (check_spec(job, spec, e) < 0) {
		build_job_drop(job);
		return -1;
	}
	job->from = from;
	if (from) {
		int64_t memory = build->settings.memory, cpu = build->settings.cpu;
		memcpy(job->root, from->root, ID_SIZE);
		memcpy(job->layer, from->layer, ID_SIZE);
		settings_copy(&build->settings, &from->settings);
		build->settings.memory = memory ? memory : build->settings.memory;
		build->settings.cpu = cpu ? cpu : build->settings.cpu;
	}
	make_keys(job);
	settings_set_text(&build->origin, spec->from ? spec->from : t->name);
	build->started_ms = clock_wall_ms();
	if (build->template)
		build_store(build, NULL, NULL);
	build_job_submit(job);
	return 0;
}

/* What a step changes besides files, whether it is done or was cached. */
static void apply_settings(struct build *build, const struct build_step *step)
{
	struct settings *s = &build->settings;
	if (step->kind == BUILD_ENV)
		for (const char *const *env = step->env; *env; env++)
			settings_set_env(s, *env);
	if (step->kind == BUILD_USER)
		settings_set_text(&s->user, step->user);
	if (step->kind == BUILD_WORKDIR) {
		autofree char *path = build_step_path(s, step->path);
		settings_set_text(&s->workdir, path);
	}
}

static void describe(const struct build_step *step, char *out, size_t size)
{
	static const char *const names[BUILD_STEP_KINDS] = {
		[BUILD_RUN] = "RUN",
		[BUILD_COPY] = "COPY",
		[BUILD_ENV] = "ENV",
		[BUILD_WORKDIR] = "WORKDIR",
		[BUILD_USER] = "USER",
	};
	const char *shell = step->kind == BUILD_RUN && step->argv[1] && step->argv[2] &&
					    strcmp(step->argv[1], "-c") == 0
				    ? step->argv[2]
				    : NULL;
	const char *what = step->kind == BUILD_RUN    ? shell ? shell : step->argv[0]
			      : step->kind == BUILD_ENV ? step->env[0]
			   : step->kind == BUILD_USER ? step->user
						      : step->path;
	snprintf(out, size, "%s %s", names[step->kind], what ? what : "");
}

static void announce(struct build_job *job, size_t index, bool cached)
{
	char text[512];
	describe(&job->spec.steps[index], text, sizeof text);
	build_log(job->build, "info", (int)index + 1, "[%zu/%zu] %s%s", index + 1,
		job->spec.step_count, cached ? "CACHED " : "", text);
}

static void booted(struct build_job *job)
{
	next_step(job);
}

void build_steps_begin(struct build_job *job)
{
	build_log(job->build, "info", BUILD_STEP_BASE, "FROM %s", job->build->origin);
	size_t cached = count_cached(job);
	for (; job->step < cached; job->step++) {
		announce(job, job->step, true);
		apply_settings(job->build, &job->spec.steps[job->step]);
	}
	next_step(job);
}

/* ---- one step ---- */

static void step_kept(struct build_job *job)
{
	next_step(job);
}

static void step_done(void *arg, const struct error *e)
{
	struct build_job *job = arg;
	job->run = NULL;
	if (e) {
		build_job_fail(job, (int)job->step, e);
		return;
	}
	const struct build_step *step = &job->spec.steps[job->step - 1];
	apply_settings(job->build, step);
	build_job_keep(job, job->keys[job->step - 1], step_kept);
}

void build_steps_stop(struct build_job *job)
{
	if (job->run)
		build_step_cancel(take_ptr(job->run));
	if (job->trial)
		start_cancel(take_ptr(job->trial));
}

/* ---- the end ---- */

static void trial_done(void *arg, const struct error *e)
{
	struct build_job *job = arg;
	job->trial = NULL;
	if (e)
		build_job_fail(job, BUILD_STEP_FINALIZE, e);
	else
		build_job_end(job);
}

/* Whether it starts is found out now, and not by the first sandbox. */
static void try_start(struct build_job *job)
{
	struct error e;
	build_log(job->build, "info", BUILD_STEP_FINALIZE, "trying the start command");
	job->trial = start_begin(job->builder, &job->build->settings, true, trial_done, job, &e);
	if (!job->trial)
		build_job_fail(job, BUILD_STEP_FINALIZE, &e);
}

static void finalize(struct build_job *job)
{
	struct build *build = job->build;
	struct settings *s = &build->settings;
	const struct build_spec *spec = &job->spec;
	job->step = spec->step_count + 1;
	if (spec->start) {
		settings_set_list(&s->start, spec->start);
		settings_set_text(&s->ready, spec->ready);
		s->ready_timeout_ms = spec->ready_timeout_ms;
	}
	if (spec->entrypoint)
		settings_set_list(&s->entrypoint, spec->entrypoint);
	if (spec->command)
		settings_set_list(&s->command, spec->command);
	if (spec->ports)
		settings_set_list(&s->ports, spec->ports);
	memcpy(build->root, job->root, ID_SIZE);
	memcpy(build->layer, job->layer, ID_SIZE);
	struct layer *layer = job->layer[0] ? layer_find(job->catalogue, job->layer) : NULL;
	build->bytes = layer ? layer->bytes : 0;
	bool wants_trial = s->start.len > 0 && s->ready;
	if (!wants_trial)
		build_job_end(job);
	else if (job->builder)
		try_start(job);
	else
		build_job_boot(job, try_start);
}

static void next_step(struct build_job *job)
{
	struct error e;
	/* What changes no file is done at once. */
	while (job->step < job->spec.step_count && !makes_layer(&job->spec.steps[job->step])) {
		announce(job, job->step, false);
		apply_settings(job->build, &job->spec.steps[job->step++]);
	}
	if (job->step == job->spec.step_count) {
		finalize(job);
		return;
	}
	if (!job->builder) {
		build_job_boot(job, booted);
		return;
	}
	announce(job, job->step, false);
	job->run = build_step_run(job, &job->spec.steps[job->step++], step_done, &e);
	if (!job->run)
		build_job_fail(job, (int)job->step, &e);
}
