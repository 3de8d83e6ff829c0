/*
 * Workers do the file work (init/files): processes of init's own code with one user's rights, in a
 * cgroup of their own. Each has a connection of the front's, answers what comes there, and ends
 * with it; init starts it and reaps it.
 */
#pragma once

#include "init/init.h"

/* Takes the connection. STARTED is sent on it by the worker or, if it could not start, by init. */
void worker_start(int fd, const struct frame_worker *how, const char *user);
/* Handles a child that ended or was stopped. Returns true if it was a worker. */
bool worker_reaped(pid_t pid, int status);
