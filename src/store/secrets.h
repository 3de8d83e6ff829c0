/* Rows of tenants' secrets, sealed before they come here. */
#pragma once

#include "model/secret.h"
#include "store/store.h"

void store_put_secret(
	struct store *s, const struct secret_record *row, store_done_fn *done, void *arg);
void store_delete_secret(struct store *s, const char *id, store_done_fn *done, void *arg);
/* At start, before the loop runs; by tenant and name. */
int store_each_secret(struct store *s, void (*each)(void *arg, const void *row), void *arg);
