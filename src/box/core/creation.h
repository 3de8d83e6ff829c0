/* Making sandboxes. */
#pragma once

#include "box/sandbox/sandbox.h"
#include "wire/keeper.h"

/* On failure sandbox is NULL, and nothing is left of it. */
typedef void sandbox_created_fn(void *arg, struct sandbox *sandbox, const struct error *e);
/*
 * Returns the sandbox that is being made, or NULL when it is refused. To abandon a creation,
 * destroy the sandbox: if its boot has not begun it is not booted, and `created` is told a failure.
 */
struct sandbox *sandbox_create(struct box *b, const struct sandbox_spec *spec,
	sandbox_created_fn *created, void *arg, struct error *e);

/* The source of a fork: the sandbox, and a copy of its disk. */
struct fork_origin {
	const struct sandbox *source;
	struct disk_name disk;
};
