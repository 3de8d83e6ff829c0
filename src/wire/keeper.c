#include "wire/keeper.h"

static const char *const pool_names[POOL_KIND_END] = {
	[POOL_BTRFS] = "btrfs",
	[POOL_LOOP] = "loop",
	[POOL_DIRECTORY] = "directory",
};

static const char *const disk_names[DISK_KIND_END] = {
	[DISK_NONE] = "none",
	[DISK_BOX] = "sandbox",
	[DISK_CHECKPOINT] = "checkpoint",
	[DISK_SNAPSHOT] = "snapshot",
	[DISK_VOLUME] = "volume",
	[DISK_LAYER] = "layer",
};

const char *pool_kind_name(enum pool_kind kind)
{
	return kind < POOL_KIND_END ? pool_names[kind] : "unknown";
}

const char *disk_kind_name(enum disk_kind kind)
{
	return kind < DISK_KIND_END ? disk_names[kind] : "unknown";
}
