/* The view of a volume. */
#pragma once

#include <stdint.h>

#include "base/field.h"
#include "model/disk.h"

#define VOLUMES_PER_TENANT 200
#define VOLUME_NAME_MAX    63

struct volume_view {
	const char *id, *tenant, *name;
	int64_t limit; /* bytes; 0: this server cannot limit it */
	int64_t created_ms;
	int64_t mounts; /* sandboxes that have it */
	enum disk_status status;
};

extern const struct field_table volume_model;
