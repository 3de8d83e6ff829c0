/* Keys as the files of this room see them. */
#pragma once

#include <uthash.h>

#include "box/key/keys.h"

/* One text that opens a key. */
struct key_secret {
	struct key *key;
	uint8_t hash[KEY_HASH_SIZE];
	char mark[KEY_MARK_SIZE];
	UT_hash_handle by_hash, by_mark;
};

struct key_tenant {
	struct key *keys; /* in the order of their creation */
	unsigned count;   /* of those that were created */
	UT_hash_handle by_name;
	char name[KEY_TENANT_MAX + 1];
};

struct key {
	struct keys *keys;
	struct key_tenant *tenant;
	struct key *prev, *next; /* of the tenant's */
	struct key_secret *current, *previous;
	char id[ID_SIZE];
	char name[KEY_NAME_MAX + 1];
	enum key_scope scope;
	enum key_origin origin;
	int64_t created_ms, expires_ms, used_ms, rotated_ms, previous_ms;
	bool ready;    /* its row is committed */
	bool rotating; /* a row with another text is on its way */
	bool revoked;
	bool leaving;  /* the deletion of its row is on its way */
	bool told;     /* that it has expired */
	bool unstored; /* its last use */
	UT_hash_handle by_id;
};

struct keys {
	struct store *store;
	uv_timer_t due; /* the next end of a text */
	uv_timer_t use; /* the next time that uses are stored */
	unsigned handles_open;
	struct key *keys; /* by id */
	struct key_secret *by_hash, *by_mark;
	struct key_tenant *tenants;
	void (*ended)(void *arg, const char *mark);
	void *ended_arg;
	bool closing;
};

/* ---- keys.c ---- */

/* A key without a text, among those of its tenant. record: texts are copied, hashes not looked at.
 */
struct key *key_new(struct keys *k, const struct key_record *record);
void key_free(struct key *key);
struct key_secret *key_secret_new(struct key *key, const uint8_t hash[KEY_HASH_SIZE]);
/* Tells that it has ended, frees it, and sets *secret to NULL. Nothing happens if it is NULL. */
void key_secret_end(struct key_secret **secret);
/* Tells that its texts have ended; they stay. */
void key_tell_end(const struct key *key);
bool key_has_expired(const struct key *key);
/* Looks anew at what ends next. */
void keys_schedule(struct keys *k);
