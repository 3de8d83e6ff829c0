#include "store/secrets.h"

#include "store/internal.h"

/* The table `secrets` has those of the server's own (keys.c). */
const struct store_table store_tenant_secrets = {"tenant_secrets", &secret_model, "tenant, name"};

void store_put_secret(
	struct store *s, const struct secret_record *row, store_done_fn *done, void *arg)
{
	store_put(s, &store_tenant_secrets, row, done, arg);
}

void store_delete_secret(struct store *s, const char *id, store_done_fn *done, void *arg)
{
	store_delete(s, &store_tenant_secrets, id, done, arg);
}

int store_each_secret(struct store *s, void (*each)(void *arg, const void *row), void *arg)
{
	return store_each(s, &store_tenant_secrets, NULL, each, arg);
}
