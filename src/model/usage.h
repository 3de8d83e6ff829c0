/* Usage of sandboxes, limits of a tenant and counters of the server, as data. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sandbox_view;

struct usage_view {
	int64_t cpu_us;              /* since its creation, over all its boots */
	int64_t memory_byte_seconds; /* the same, by samples */
	int64_t memory, pids;        /* now */
	int64_t disk;                /* now; -1: it is not counted here */
};

/* One moment of a sandbox's history, which is kept in memory only. */
struct usage_sample {
	int64_t time_ms;
	int64_t cpu_us; /* since its creation */
	int64_t memory, disk;
};

#define USAGE_SAMPLES_MAX 240 /* twenty minutes */

struct usage_report {
	const struct sandbox_view *sandbox;
	const struct usage_view *now;       /* NULL: it was not measured, or it has ended */
	const struct usage_sample *samples; /* oldest first */
	size_t sample_count;
};

/* Amounts of all sandboxes of a tenant together; as a limit 0 stands for none. */
struct tenant_amounts {
	int64_t sandboxes;
	int64_t cpu; /* millicores */
	int64_t memory, disk;
};

/* Counters of all tenants together. */
struct box_counters {
	uint64_t sandboxes, pooled;
	uint64_t created_total, destroyed_total, boots_total, boot_failures_total;
	uint64_t executions_running, executions_total, timeouts_total, oom_kills_total;
};
