/* Calls that a process of ours gives up for good, once it is set up. */
#pragma once

#include <stddef.h>

/* Those that none of them needs, and more; from now on they answer EPERM. */
int forbid_calls(const char *const *more, size_t count);
/* All but these: who makes another one is killed. */
int allow_calls(const char *const *names, size_t count);
