#pragma once

#include "base/buf.h"
#include "wire/warden.h"

/* The volumes of a sandbox as text for the store, with its NUL, and back. */
void volumes_pack(const struct warden_volume volumes[WARDEN_VOLUMES_MAX], struct buf *out);
void volumes_unpack(const char *text, struct warden_volume ret[WARDEN_VOLUMES_MAX]);
