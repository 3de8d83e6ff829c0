/* Lists mount points, from /proc/self/mountinfo. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

/* Fills out with the paths, each with its zero, in the order in which they were mounted. */
int mount_points_read(struct buf *out);
/* Parses a mountinfo that the caller has read. */
void mount_points_parse(struct buf *out, const char *text, size_t len);
/* Whether a path is at this mount point or below it. */
bool mount_point_holds(const char *point, const char *path);
/* The path before this one, or the last one for NULL; NULL when there is no more. */
const char *mount_points_before(const struct buf *points, const char *point);
