/* Declarations shared by the steps of inside.c. */
#pragma once

#include "base/mount.h"
#include "warden/warden.h"

struct inside {
	struct warden *w;
	struct boot *b;
	int root_fd; /* the sandbox's root, once mounted */
	int proc_fd;
	int sys_fd; /* /proc/sys, as it is before it is covered */
};

/* Switches to the uid for work in the sandbox's layers, with all our capabilities in force. */
int inside_act_as(uid_t uid);

/* root.c */
int step_layers(struct inside *in);
int step_root(struct inside *in);
int step_usr(struct inside *in);
/* kernel_files.c */
int step_dev(struct inside *in);
int step_proc(struct inside *in);
int step_mask(struct inside *in);
/* additions.c */
int step_volumes(struct inside *in);
