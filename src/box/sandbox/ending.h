/* The end of a sandbox. */
#pragma once

#include "box/sandbox/event.h"

struct box;
struct sandbox;

void sandbox_terminate(struct sandbox *s, enum event_cause cause);

/* Ends it. No operation may have the turn. */
void sandbox_end_now(struct sandbox *s);
/* Retries rows that the store refused. */
void sandbox_retry_ends(struct box *b);
