/* What the server was started with. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/sandbox.h"

struct tenant_quota;

struct box_config {
	struct resources defaults, maxima;
	int64_t output_limit;          /* bytes kept of a stream */
	int64_t retention_ms;          /* how long ended executions can be asked for */
	unsigned pool_size;            /* sandboxes kept booted for the next create */
	unsigned sandboxes_per_tenant; /* where its quota does not say otherwise */
	const struct tenant_quota *quotas;
	size_t quota_count;
	unsigned executions_per_sandbox; /* at once */
	bool builds_use_host_network;
	const char *run_dir;      /* where the inits' sockets are */
	const char *spool_dir;    /* where long output is kept */
	const char *contexts_dir; /* where archives for builds are kept */
};
