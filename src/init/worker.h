/*
 * Workers do the file work (init/files): processes of init's own code with one user's rights, in a
 * cgroup of their own. Each has a connection of the front's, answers what comes there, and ends
 * with it; init starts it and reaps it.
 */
#pragma once

#include "init/init.h"

/* Takes the connection. STARTED is said on it, by the worker or, when there is none, by us. */
void worker_start(int fd, const struct frame_worker *how, const char *user);
/* A child of ours has ended or was stopped; true when it was a worker. */
bool worker_reaped(pid_t pid, int status);
