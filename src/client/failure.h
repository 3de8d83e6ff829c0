/* Filling struct bunker_error, once, where the failure is found. */
#pragma once

#include "bunker.h"

/* Returns -1, so that `return client_fail(…)` reads well. e may be NULL. */
int client_fail(struct bunker_error *e, const char *code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
