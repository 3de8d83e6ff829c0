/* System calls that the server's processes give up for good after their setup. */
#pragma once

#include <stddef.h>

/* Makes the calls that none of these processes needs, and `more`, fail with EPERM. */
int forbid_calls(const char *const *more, size_t count);
/* The same, but those of `kept` stay possible. */
int forbid_calls_but(const char *const *kept, size_t count);
/* Allows only these calls; any other kills the process. */
int allow_calls(const char *const *names, size_t count);
/* The same, and sockets of the internet's two families. */
int allow_calls_and_internet(const char *const *names, size_t count);
