/* Rows of API keys; of what opens them, only hashes. */
#pragma once

#include "model/key.h"
#include "store/store.h"

#define STORE_HASH_SIZE 32

void store_put_key(struct store *s, const struct key_record *row, store_done_fn *done, void *arg);
void store_delete_key(struct store *s, const char *id, store_done_fn *done, void *arg);
/* Changes nothing else, and nothing if the key is gone. */
void store_put_key_use(struct store *s, const char *id, int64_t used_ms);
/* At start, before the loop runs; in the order of their creation. */
int store_each_key(struct store *s, void (*each)(void *arg, const void *row), void *arg);
