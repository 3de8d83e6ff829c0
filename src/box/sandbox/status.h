/* The table of allowed changes of status. */
#pragma once

#include <stdbool.h>

#include "box/sandbox/object.h"

void sandbox_set_status(struct sandbox *s, enum sandbox_status status);
/* Idle or running, by what goes on in it. */
void sandbox_set_awake(struct sandbox *s);

static inline bool sandbox_is_awake(const struct sandbox *s)
{
	return s->status == SANDBOX_IDLE || s->status == SANDBOX_RUNNING;
}
