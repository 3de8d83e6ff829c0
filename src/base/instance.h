/*
 * The name of a server, of which its cgroups are made.
 *
 * The file `instance` of the data directory has "PLACE NAME": where the data is, and the name for
 * as long as it stays there. A copy is at another place and gets another name, so that it never
 * finds, and never ends, sandboxes of the original. Version 0.2 wrote "RANGE NAME", and its cgroups
 * have both in their name.
 */
#pragma once

#define INSTANCE_SIZE 16

/* 0, or the negative error of writing the file. */
int instance_take(int data_fd, char name[INSTANCE_SIZE]);
