/* A volume as everybody may read it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define VOLUMES_PER_TENANT 200
#define VOLUME_NAME_MAX    63

struct volume_view {
	const char *id, *tenant, *name;
	int64_t limit; /* bytes; 0: this server cannot limit it */
	int64_t created_ms;
	unsigned mounts; /* sandboxes that have it */
	bool lost;       /* its disk is gone */
};
