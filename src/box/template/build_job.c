#include "box/template/build_job.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "box/sandbox/halt.h"
#include "box/sandbox/hidden.h"
#include "box/sandbox/later.h"
#include "box/sandbox/object.h"
#include "box/sandbox/status.h"

/* At once; the others wait for their turn. */
#define JOBS_RUNNING            4
#define JOBS_RUNNING_PER_TENANT 2

/* ---- memory ---- */

static void timed_out(uv_timer_t *timer);

struct build_job *build_job_new(
	struct build *build, const struct build_work *work, int64_t timeout_ms)
{
	struct build_job *job = mem_new(sizeof *job);
	job->work = work;
	job->build = build;
	job->catalogue = build->catalogue;
	build->job = job;
	DL_APPEND(job->catalogue->jobs, job);
	uv_timer_init(job->catalogue->box->loop, &job->timer);
	job->timer.data = job;
	uv_timer_start(&job->timer, timed_out, (uint64_t)timeout_ms, 0);
	return job;
}

static void job_free(uv_handle_t *handle)
{
	struct build_job *job = handle->data;
	scratch_finish(&job->memory);
	fields_free(&network_model, &job->network);
	free(job->keys);
	free(job);
}

void build_job_drop(struct build_job *job)
{
	job->build->job = NULL;
	DL_DELETE(job->catalogue->jobs, job);
	uv_close((uv_handle_t *)&job->timer, job_free);
}

static void give_turns(struct catalogue *c);

static void build_job_dismiss_builder(struct build_job *job);

/* When nothing will call back any more. */
static void build_job_free_if_done(struct build_job *job)
{
	struct catalogue *c = job->catalogue;
	if (!job->ended || job->pending > 0)
		return;
	if (job->builder) {
		build_job_dismiss_builder(job);
		return;
	}
	DL_DELETE(c->jobs, job);
	uv_close((uv_handle_t *)&job->timer, job_free);
	layers_collect(c);
	give_turns(c);
	box_check_closed(c->box);
}

/* ---- turns ---- */

static bool may_run(const struct build_job *job)
{
	unsigned all = 0, same = 0;
	const struct build_job *other;
	DL_FOREACH (job->catalogue->jobs, other) {
		all += other->running;
		same += other->running && strcmp(other->build->tenant, job->build->tenant) == 0;
	}
	return all < JOBS_RUNNING && same < JOBS_RUNNING_PER_TENANT;
}

static void build_job_begin(struct build_job *job)
{
	struct build *build = job->build;
	job->running = true;
	build->status = BUILD_BUILDING;
	if (build->template)
		build_store(build, NULL, NULL);
	build_changed(build);
	job->work->begin(job);
}

static void give_turns(struct catalogue *c)
{
	struct build_job *job, *next;
	DL_FOREACH_SAFE (c->jobs, job, next)
		if (!job->running && !job->ended && may_run(job))
			build_job_begin(job);
}

static void turns_given(void *arg, const struct error *e)
{
	(void)e;
	give_turns(arg);
}

void build_job_submit(struct build_job *job)
{
	box_answer_later(job->catalogue->box, turns_given, job->catalogue, NULL);
}

/* ---- the builder ---- */

static void build_job_builder_gone(void *arg)
{
	struct build_job *job = arg;
	job->builder = NULL;
	job->pending--;
	build_job_free_if_done(job);
}

static void build_job_dismiss_builder(struct build_job *job)
{
	job->pending++;
	hidden_dismiss(job->builder, build_job_builder_gone, job);
}

struct booting {
	struct build_job *job;
	void (*booted)(struct build_job *job);
};

static void build_job_builder_booted(void *arg, const struct error *e)
{
	struct booting *boot = arg;
	struct build_job *job = boot->job;
	void (*booted)(struct build_job * job) = boot->booted;
	free(boot);
	job->pending--;
	if (e) {
		sandbox_free(job->builder);
		job->builder = NULL;
	}
	if (job->ended) {
		build_job_free_if_done(job);
	} else if (e) {
		build_job_fail(job, BUILD_STEP_BASE, e);
	} else {
		sandbox_set_awake(job->builder);
		booted(job);
	}
}

static struct sandbox *new_builder(const struct build_job *job)
{
	struct box *b = job->catalogue->box;
	const struct settings *settings = &job->build->settings;
	struct sandbox *s = hidden_new(b, job->build->tenant);
	if (settings->memory)
		s->resources.memory = settings->memory;
	if (settings->cpu)
		s->resources.cpu = settings->cpu;
	memcpy(s->root, job->root, ID_SIZE);
	memcpy(s->layer, job->layer, ID_SIZE);
	fields_copy(&network_model, 0, network_model.size, &s->network, &job->network);
	return s;
}

void build_job_boot(struct build_job *job, void (*booted)(struct build_job *job))
{
	struct booting *boot = mem_new(sizeof *boot);
	*boot = (struct booting){job, booted};
	job->builder = new_builder(job);
	job->pending++;
	sandbox_boot(job->builder, false, build_job_builder_booted, boot);
}

/* ---- layers ---- */

struct keep {
	struct build_job *job;
	void (*kept)(struct build_job *job);
};

static void build_job_disk_kept(void *arg, struct layer *layer, const struct error *e)
{
	struct keep *keep = arg;
	struct build_job *job = keep->job;
	void (*kept)(struct build_job * job) = keep->kept;
	free(keep);
	job->pending--;
	if (job->ended) {
		build_job_free_if_done(job);
	} else if (e) {
		build_job_fail(job, (int)job->step, e);
	} else {
		memcpy(job->layer, layer->id, ID_SIZE);
		kept(job);
	}
}

void build_job_keep(struct build_job *job, const char *key, void (*kept)(struct build_job *job))
{
	struct keep *keep = mem_new(sizeof *keep);
	*keep = (struct keep){job, kept};
	job->pending++;
	layer_keep(job->catalogue, job->builder, key, build_job_disk_kept, keep);
}

void build_jobs_need(struct catalogue *c, void (*need)(struct catalogue *c, const char *id))
{
	const struct build_job *job;
	DL_FOREACH (c->jobs, job) {
		need(c, job->root);
		need(c, job->layer);
	}
}

/* ---- the end ---- */

static void build_job_finish(
	struct build_job *job, enum build_status status, int step, const char *reason)
{
	struct build *build = take_ptr(job->build);
	job->ended = true;
	job->running = false;
	uv_timer_stop(&job->timer);
	job->work->stop(job);
	build_end(build, status, step, reason);
	build_job_gone(build);
	build_job_free_if_done(job);
}

void build_job_end(struct build_job *job)
{
	build_log(job->build, "info", BUILD_STEP_FINALIZE, "ready");
	build_job_finish(job, BUILD_READY, 0, "");
}

void build_job_fail(struct build_job *job, int step, const struct error *e)
{
	if (job->ended)
		return;
	build_log(job->build, "error", step, "%s", e->message);
	job->build->code = e->code;
	build_job_finish(job, BUILD_FAILED, step, e->message);
}

static int current_step(const struct build_job *job)
{
	return job->step <= job->spec.step_count ? (int)job->step : BUILD_STEP_FINALIZE;
}

static void timed_out(uv_timer_t *timer)
{
	struct build_job *job = timer->data;
	struct error e;
	error_set(&e, ERROR_REQUEST_TIMEOUT, "the build took too long, and was ended");
	build_job_fail(job, current_step(job), &e);
}

void build_job_cancel(struct build_job *job)
{
	build_log(job->build, "warn", current_step(job), "cancelled");
	build_job_finish(job, BUILD_CANCELLED, current_step(job), "it was cancelled");
}

void build_jobs_stop(struct catalogue *c)
{
	struct build_job *job, *next;
	struct error e;
	error_set(&e, ERROR_UNAVAILABLE, "the server was stopped during the build");
	DL_FOREACH_SAFE (c->jobs, job, next)
		if (!job->ended)
			build_job_fail(job, current_step(job), &e);
}
