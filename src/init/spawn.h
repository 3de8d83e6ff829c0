/* Declarations shared by both sides of a clone. */
#pragma once

#include "init/init.h"

#define CHILD_DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Holds the child's input, and the reason for a failure before the exec. */
struct child {
	const struct start_request *request;
	struct user user;
	const char **envp;
	int stdio[3];
	int control; /* becomes 3; -1: nothing does */
	enum frame_stage stage;
	int error;
};

/* The rights and surroundings of the process; ends it when that fails. */
void child_become(struct child *c);
/* Puts the process under the quota of processor time; ends it when that fails. */
void child_limit_time(struct child *c);
/* execvp with the PATH that the process will have, not ours. Returns only on failure. */
void child_exec(const struct child *c);
/* Takes a command from the clone to its exec; arg is a struct child. */
int child_main(void *arg);
/* Returns whether the working directory is below the root, by any links. */
bool child_is_inside(void);

/* ---- minder.c ---- */

/*
 * Runs an interpreter's minder, after child_become: starts the interpreter, forwards its output,
 * ends with it.
 */
__attribute__((noreturn)) void minder_main(const struct child *c);

/* ---- spawn.c ---- */

/* A copy of init, born in the cgroup, or in init's own (-1): 0 in the child. */
pid_t spawn_fork(int cgroup_fd);
/* Makes the OOM killer prefer this process to init. */
void spawn_prefer_to_kill(pid_t pid);
void spawn_close(const int *fds, size_t count);
