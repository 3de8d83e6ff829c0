/*
 * The key under which tenants' secrets are stored: the file of --secret-key-file, or systemd's
 * credential bunker-secret-key, or DATA/secret-key, which is made when it is not there. A key that
 * is named and cannot be read is never replaced.
 */
#pragma once

#include <stdbool.h>

#include "secret/seal.h"

#define SECRET_KEY_FILE       "secret-key"
#define SECRET_KEY_CREDENTIAL "bunker-secret-key"

/*
 * Called by the front while it still may read every file, so that no other process ever has the
 * key. Returns false, with the reason in the log, if there is none: the server goes on without
 * secrets.
 */
bool secret_key_load(const char *data, const char *file, uint8_t key[SEAL_KEY_SIZE]);
