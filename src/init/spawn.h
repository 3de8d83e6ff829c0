/* What the two sides of a clone share. */
#pragma once

#include "init/init.h"

#define CHILD_DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* What the child needs, and where it leaves its reason when it fails before the exec. */
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
/* execvp with the PATH that the process will have, not ours. Returns only on failure. */
void child_exec(const struct child *c);
/* All of a command's way to its exec, for clone: takes a struct child. */
int child_main(void *arg);
/* What /proc/self/cwd leads to is below our root, whatever links led there. */
bool child_is_inside(void);

/* ---- minder.c ---- */

/* The life of a kernel's minder, which has become who it is to be: starts the kernel, passes on
 * what it writes, ends with it. */
__attribute__((noreturn)) void minder_main(const struct child *c);

/* ---- spawn.c ---- */

/* A copy of init, born in the cgroup: 0 in the child. */
pid_t spawn_fork(int cgroup_fd);
/* Whoever fills the memory goes before init does. */
void spawn_prefer_to_kill(pid_t pid);
void spawn_close(const int *fds, size_t count);
