/*
 * The first command of a sandbox finds a cold kernel: no name below its root has been looked up
 * yet. While the server is still on its way to us we look up what nearly every command needs.
 * Whatever is there is only looked at; on a disk that somebody has changed it may be anything.
 */
#include "init/init.h"

#include <unistd.h>

#include "base/cleanup.h"

static const char *const needed[] = {
	"/bin/sh",
	"/usr/bin/env",
	"/usr/bin/true",
	"/etc/ld.so.cache",
	"/etc/ld.so.preload",
	"/lib64/ld-linux-x86-64.so.2",
	"/lib/ld-linux-aarch64.so.1",
	"/lib/x86_64-linux-gnu/libc.so.6",
	"/lib/aarch64-linux-gnu/libc.so.6",
};

void warm_up(void)
{
	struct user user;
	(void)user_lookup("user", &user);
	for (size_t i = 0; i < ARRAY_LEN(needed); i++)
		(void)access(needed[i], F_OK);
}
