/*
 * Workers do the file work: processes of init's own code with a user's rights, in a cgroup of their
 * own. One that has done its job waits for the next of the same user, because a fork with all that
 * belongs to it costs more than most jobs.
 */
#pragma once

#include "init/init.h"

struct worker;

/* Hands the job to a worker, a new one if need be. The descriptors in *ret stay the worker's. */
int worker_start(
	const struct start_request *request, struct worker **worker, struct spawn_result *ret);
/* Whom to tell: process_finished is called once for it. */
void worker_bind(struct worker *w, struct process *p);
/* It, and whatever it started. */
void worker_kill(struct worker *w);
/* Its process is told and its output is read, or nobody wants it any more. */
void worker_release(struct worker *w);
/* A child of ours has ended; true when it was a worker. */
bool worker_reaped(pid_t pid, int status, const struct rusage *usage);
/* Idle ones go after a while; returns when to look again, 0 for never. */
int64_t worker_check_idle(void);
