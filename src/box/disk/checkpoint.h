/*
 * Checkpoints: named restore points of one sandbox's disk. They are made while it runs, which stops
 * it for milliseconds; they go with their sandbox. Processes are not part of them: a restore ends
 * those, and boots the sandbox on the disk as it was.
 */
#pragma once

#include "box/sandbox/sandbox.h"
#include "model/checkpoint.h"

struct checkpoint;

/* c is NULL and e says why when it failed. frozen_us: how long the sandbox stood still. */
typedef void checkpoint_created_fn(
	void *arg, struct checkpoint *c, int64_t frozen_us, const struct error *e);
int checkpoint_create(struct sandbox *s, const char *name, checkpoint_created_fn *created,
	void *arg, struct error *e);
/* By id or name. */
struct checkpoint *checkpoint_find(struct sandbox *s, const char *id_or_name);
/* In the order of their creation. */
struct checkpoint *checkpoint_first(struct sandbox *s);
struct checkpoint *checkpoint_next(const struct checkpoint *c);
void checkpoint_view(const struct checkpoint *c, struct checkpoint_view *out);
int checkpoint_restore(struct checkpoint *c, sandbox_done_fn *done, void *arg, struct error *e);
void checkpoint_delete(struct checkpoint *c, sandbox_done_fn *done, void *arg);

/* Throws away what was changed since the sandbox was made; it is booted anew if it was awake. */
void sandbox_discard(struct sandbox *s, sandbox_done_fn *done, void *arg);
