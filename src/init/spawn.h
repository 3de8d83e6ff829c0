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
	enum frame_stage stage;
	int error;
};

/* The rights and surroundings of the process; ends it when that fails. */
void child_become(struct child *c);
/* All of a command's way to its exec, for clone: takes a struct child. */
int child_main(void *arg);
