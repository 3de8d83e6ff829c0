/* What a sandbox has used, and uses. */
#pragma once

#include <stddef.h>

#include "model/usage.h"

struct box;
struct sandbox;

/* usage is NULL when the sandbox has gone meanwhile. */
typedef void usage_fn(void *arg, const struct usage_view *usage);
/* As it is now: the kernel is asked. */
void usage_measure(struct sandbox *s, usage_fn *measured, void *arg);
/* Copies the samples, oldest first, and returns how many there are. */
size_t usage_samples(const struct sandbox *s, struct usage_sample out[USAGE_SAMPLES_MAX]);
