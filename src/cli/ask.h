/* Questions before something is thrown away. */
#pragma once

#include <stdbool.h>

/* Asks on stderr. Anything but a clear yes is a no. */
bool cli_ask(const char *format, ...) __attribute__((format(printf, 1, 2)));
