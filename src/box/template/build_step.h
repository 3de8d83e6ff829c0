/* The work of one step in the builder. */
#pragma once

#include "box/template/build_job.h"

struct step_run;

/* `done` gets the job, once, never before the call has returned. NULL with *e when it cannot begin.
 */
struct step_run *build_step_run(struct build_job *job, const struct build_step *step,
	sandbox_done_fn *done, struct error *e);
/* `done` will not be called. */
void build_step_cancel(struct step_run *run);

/* Describes a RUN for the log: the shell's line, or the program. */
const char *build_step_command(const struct build_step *step);
/* A path as later steps mean it, from the working directory on; owned. */
char *build_step_path(const struct settings *s, const char *path);
