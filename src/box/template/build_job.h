/*
 * A build that is under way. The job owns what it takes: the steps, copied; the builder, a hidden
 * sandbox; what runs in it; the clock. It goes from one piece of work to the next by callbacks, and
 * ends once, by build_job_end or build_job_fail, whatever was under way.
 */
#pragma once

#include "base/scratch.h"
#include "box/template/catalogue.h"

struct import;
struct step_run;
struct startup;

/* The work of a job, begun when its turn has come. */
struct build_work {
	void (*begin)(struct build_job *job);
	/* Ends all that runs for the job, without callbacks. */
	void (*stop)(struct build_job *job);
};

struct build_job {
	struct build *build; /* NULL once it has ended */
	struct catalogue *catalogue;
	struct build_job *prev, *next; /* in the catalogue's list, oldest first */
	struct scratch memory;         /* of the spec */
	struct build_spec spec;
	struct network_settings network; /* of the builder; owned */
	const struct build_work *work;
	struct import *import;              /* instead of the spec */
	struct sandbox *builder;            /* NULL: not booted */
	bool running;                       /* it has had its turn */
	bool ended;                         /* only the builder's end is waited for */
	unsigned pending;                   /* callbacks that will come, whatever happens */
	struct build *from;                 /* NULL: a built-in template */
	char root[ID_SIZE], layer[ID_SIZE]; /* what comes next stands on */
	size_t step;                        /* the next one; while one is done, its number from 1 */
	char (*keys)[LAYER_KEY_LEN + 1];    /* of each step's layer */
	struct step_run *run;               /* what is done for the step */
	struct startup *trial;              /* of the start command */
	uv_timer_t timer;                   /* for all of it */
};

/* ---- build_job.c ---- */

struct build_job *build_job_new(
	struct build *build, const struct build_work *work, int64_t timeout_ms);
/* Frees a job that was not submitted; its build stays as it was. */
void build_job_drop(struct build_job *job);
/* Has its turn now or later. */
void build_job_submit(struct build_job *job);
/* The builder stands on job->root and begins with job->layer. */
void build_job_boot(struct build_job *job, void (*booted)(struct build_job *job));
/* Keeps the builder's disk, as job->layer from now on. */
void build_job_keep(struct build_job *job, const char *key, void (*kept)(struct build_job *job));
void build_job_end(struct build_job *job);
void build_job_fail(struct build_job *job, int step, const struct error *e);

/* ---- build_plan.c ---- */

/* Checks the spec, and copies it into the job. */
int build_plan_take(struct build_job *job, const struct build_spec *spec, struct error *e);
/* When it is known what the steps stand on. */
void build_plan_make_keys(struct build_job *job);
/* Whether the step changes files. */
bool build_plan_makes_layer(const struct build_step *step);
/* Returns how many of the first steps are cached; job->layer is their result. */
size_t build_plan_cached(struct build_job *job);
