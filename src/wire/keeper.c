#include "wire/keeper.h"

static const char *const disk_pool_names[DISK_POOL_KIND_END] = {
	[DISK_POOL_BTRFS] = "btrfs",
	[DISK_POOL_LOOP] = "loop",
	[DISK_POOL_DIRECTORY] = "directory",
};

static const char *const disk_names[DISK_KIND_END] = {
	[DISK_NONE] = "none",
	[DISK_BOX] = "sandbox",
	[DISK_CHECKPOINT] = "checkpoint",
	[DISK_SNAPSHOT] = "snapshot",
	[DISK_VOLUME] = "volume",
	[DISK_LAYER] = "layer",
};

const char *disk_pool_kind_name(enum disk_pool_kind kind)
{
	return kind < DISK_POOL_KIND_END ? disk_pool_names[kind] : "unknown";
}

const char *disk_kind_name(enum disk_kind kind)
{
	return kind < DISK_KIND_END ? disk_names[kind] : "unknown";
}
