#include "model/disk.h"

#include <stddef.h>

const char *const disk_status_names[] = {[DISK_READY] = "ready", [DISK_LOST] = "lost", NULL};
