/*
 * Secrets of tenants. In memory as in the store they are sealed (secret/seal.h); a value is open
 * only while it is put into what bunker-broker gets. A change is told when it is committed, and one
 * secret has one change at a time.
 *
 * While a stored secret cannot be opened, because the server was started with another key than
 * before, none is taken: restoring the old key must bring back everything that was accepted.
 * Deleting those secrets ends that.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/secret.h"
#include "secret/authority.h"
#include "secret/seal.h"

struct secret;
struct store;
struct vault;

typedef void vault_done_fn(void *arg, const struct error *e);

/* key: NULL if the server has none. At start, before the loop runs. */
int vault_open(
	struct vault **ret, struct store *store, const uint8_t key[SEAL_KEY_SIZE], struct error *e);
void vault_close(struct vault *v);

/* NULL: there is none. */
struct secret *vault_find(struct vault *v, const char *tenant, const char *name);
/* By name. Calls until `each` returns false. */
void vault_each(struct vault *v, const char *tenant,
	bool (*each)(void *arg, const struct secret_record *record), void *arg);
/* The record's texts are the secret's. */
void secret_view(const struct secret *s, struct secret_record *ret);
/* Appends the value; returns -EBADMSG if it cannot be opened. The caller overwrites the buffer. */
int secret_read(const struct secret *s, struct buf *out);

/* Makes it or gives it another value. Calls back, now or later; the secret is there until then. */
void vault_put(struct vault *v, const char *tenant, const char *name, const char *value,
	vault_done_fn *done, void *arg);
void vault_delete(struct secret *s, vault_done_fn *done, void *arg);

/* A sandbox's authority as its row has it. Returns -ENOKEY without a key. */
int vault_seal_authority(
	struct vault *v, const char *sandbox, const struct authority *a, struct strings *ret);
int vault_open_authority(
	struct vault *v, const char *sandbox, const struct strings *sealed, struct authority *ret);

/* Overwrites what it held, and frees it. */
void vault_wipe(struct buf *b);
#define wipedbuf __attribute__((cleanup(vault_wipe))) struct buf
