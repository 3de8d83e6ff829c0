/* The configuration that the server was started with. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/sandbox.h"

struct tenant_quota;

struct box_config {
	struct resources defaults, maxima;
	int64_t output_limit;          /* bytes kept of a stream */
	int64_t kept_limit;            /* bytes kept of one tenant's commands and their output */
	int64_t retention_ms;          /* how long ended executions can be asked for */
	unsigned pool_size;            /* sandboxes kept booted for the next create */
	unsigned sandboxes_per_tenant; /* where its quota does not say otherwise */
	const struct tenant_quota *quotas;
	size_t quota_count;
	unsigned executions_per_sandbox; /* at once */
	unsigned descriptors;            /* for sandboxes and file workers */
	unsigned descriptors_per_tenant;
	enum network_mode build_network;   /* of builds that do not say; none: of all */
	enum network_mode default_network; /* of creates that do not say */
	struct egress_config egress;       /* which local ranges the operator opened */
	const char *sandbox_ca; /* entries of a section: CAs that all sandboxes trust; "": none */
	const uint8_t *secret_key; /* of SEAL_KEY_SIZE; NULL: there is none */
	const char *owner;         /* the database's identity, if the disks do not have it; or "" */
	const char *run_dir;       /* where the inits' sockets are */
	const char *spool_dir;     /* where long output is kept */
	const char *contexts_dir;  /* where archives for builds are kept */
};
