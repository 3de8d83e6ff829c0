/* What a sandbox has used, and uses. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct box;
struct sandbox;

struct usage_view {
	int64_t cpu_us;              /* since its creation, over all its boots */
	int64_t memory_byte_seconds; /* the same, by samples */
	int64_t memory, pids;        /* now */
	int64_t disk;                /* now; -1: it is not counted here */
};

/* One moment of its history, which is kept in memory only. */
struct usage_sample {
	int64_t time_ms;
	int64_t cpu_us; /* since its creation */
	int64_t memory, disk;
};

/* usage is NULL when the sandbox has gone meanwhile. */
typedef void usage_fn(void *arg, const struct usage_view *usage);
/* As it is now: the kernel is asked. */
void usage_measure(struct sandbox *s, usage_fn *measured, void *arg);
/* The samples from begin to end, oldest first: calls each. */
void usage_each_sample(const struct sandbox *s, int64_t begin_ms, int64_t end_ms,
	void (*each)(void *arg, const struct usage_sample *sample), void *arg);
