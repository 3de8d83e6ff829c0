/* Landlock, for server processes that need few files. */
#pragma once

#include <stdint.h>

/* Access rights for landlock_allow. landlock_allow never grants execution. */
#define LANDLOCK_TO_READ  (UINT64_C(1) << 2 | UINT64_C(1) << 3)
#define LANDLOCK_TO_WRITE UINT64_MAX

/* 0: the kernel has none. */
int landlock_version(void);
/* A set of rules that allows nothing yet, to be closed; negative: an error. */
int landlock_begin(void);
/* Allows `access` below a directory. */
int landlock_allow(int ruleset, int dir_fd, uint64_t access);
int landlock_enforce(int ruleset);
/* From now on abstract sockets of processes outside cannot be connected to; a kernel before
 * Landlock 6 leaves it as it is. */
int landlock_scope_sockets(void);
