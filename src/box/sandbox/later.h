/*
 * Answers that must not come before the call has returned, and the wait of a close for what is
 * under way.
 */
#pragma once

#include "box/sandbox/sandbox.h"

/* Calls back with e, or NULL when it is NULL, after the caller has returned. */
void box_answer_later(struct box *b, sandbox_done_fn *done, void *arg, const struct error *e);
/* Something that a close may be waiting for has happened. */
void box_check_closed(struct box *b);
