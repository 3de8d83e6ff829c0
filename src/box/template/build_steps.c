/*
 * The steps of a build, one after the other.
 *
 *     cached layer, or the template → builder → step → its layer kept → next step → …
 *     → trial of the start command → ready
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "box/template/build_job.h"
#include "box/template/build_step.h"
#include "box/template/startup.h"

#define TIMEOUT_DEFAULT_MS (INT64_C(3600) * 1000)

static void next_step(struct build_job *job);

/* ---- the beginning ---- */

static void build_steps_begin(struct build_job *job);
static void build_steps_stop(struct build_job *job);

static const struct build_work steps_work = {build_steps_begin, build_steps_stop};

int build_start(struct build *build, const struct build_spec *spec, struct error *e)
{
	struct template *t;
	struct build *from;
	struct box *b = build->catalogue->box;
	if (build->job || build->status != BUILD_WAITING)
		return error_set(e, ERROR_NOT_READY, "the build was started already");
	if (template_resolve(b, build->tenant, spec->from, &t, &from, e) < 0)
		return -1;
	struct build_job *job = build_job_new(
		build, &steps_work, spec->timeout_ms > 0 ? spec->timeout_ms : TIMEOUT_DEFAULT_MS);
	if (build_plan_take(job, spec, e) < 0) {
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
	build_plan_make_keys(job);
	settings_set_text(&build->origin, spec->from ? spec->from : t->name);
	build->started_ms = clock_wall_ms();
	if (build->template)
		build_store(build, NULL, NULL);
	build_job_submit(job);
	return 0;
}

/* Applies the settings that a step changes, whether it runs or was cached. */
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

static void build_steps_describe(const struct build_step *step, char *out, size_t size)
{
	static const char *const names[BUILD_STEP_KINDS] = {
		[BUILD_RUN] = "RUN",
		[BUILD_COPY] = "COPY",
		[BUILD_ENV] = "ENV",
		[BUILD_WORKDIR] = "WORKDIR",
		[BUILD_USER] = "USER",
	};
	const char *what = step->kind == BUILD_RUN    ? build_step_command(step)
			   : step->kind == BUILD_ENV  ? step->env[0]
			   : step->kind == BUILD_USER ? step->user
						      : step->path;
	snprintf(out, size, "%s %s", names[step->kind], what ? what : "");
}

static void build_steps_announce(struct build_job *job, size_t index, bool cached)
{
	char text[512];
	build_steps_describe(&job->spec.steps[index], text, sizeof text);
	build_log(job->build, "info", (int)index + 1, "[%zu/%zu] %s%s", index + 1,
		job->spec.step_count, cached ? "CACHED " : "", text);
}

static void build_steps_booted(struct build_job *job)
{
	next_step(job);
}

static void build_steps_begin(struct build_job *job)
{
	build_log(job->build, "info", BUILD_STEP_BASE, "FROM %s", job->build->origin);
	size_t cached = build_plan_cached(job);
	for (; job->step < cached; job->step++) {
		build_steps_announce(job, job->step, true);
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

static void build_steps_stop(struct build_job *job)
{
	if (job->run)
		build_step_cancel(take_ptr(job->run));
	if (job->trial)
		startup_cancel(take_ptr(job->trial));
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
	job->trial = startup_begin(job->builder, &job->build->settings, true, trial_done, job, &e);
	if (!job->trial)
		build_job_fail(job, BUILD_STEP_FINALIZE, &e);
}

static void build_steps_finalize(struct build_job *job)
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
	/* A step that changes no file is done at once. */
	while (job->step < job->spec.step_count &&
		!build_plan_makes_layer(&job->spec.steps[job->step])) {
		build_steps_announce(job, job->step, false);
		apply_settings(job->build, &job->spec.steps[job->step++]);
	}
	if (job->step == job->spec.step_count) {
		build_steps_finalize(job);
		return;
	}
	if (!job->builder) {
		build_job_boot(job, build_steps_booted);
		return;
	}
	build_steps_announce(job, job->step, false);
	job->run = build_step_run(job, &job->spec.steps[job->step++], step_done, &e);
	if (!job->run)
		build_job_fail(job, (int)job->step, &e);
}
