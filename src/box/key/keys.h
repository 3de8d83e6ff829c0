/*
 * API keys: who may come in, as what, and until when.
 *
 * All keys are in memory, found by the hash of what the client sent; the store has their rows. A
 * key is good once its row is committed, and bad from the moment that its end is asked for, even if
 * that could not be stored. A key has one text, or two while the text before a rotation has its
 * grace. Whoever holds connections is told of every text that has ended (keys_on_end).
 *
 * When a key was used last is kept to the minute, and written for all keys together once a minute.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/error.h"
#include "base/id.h"
#include "box/key/key_text.h"
#include "model/key.h"

struct key;
struct keys;
struct store;

/* Reads the rows. At start, before the loop runs. */
int keys_open(struct keys **ret, uv_loop_t *loop, struct store *store, struct error *e);
/* Stores what is not stored yet; frees them as the loop turns. */
void keys_close(struct keys *k);
/* The key of the file for the CLI on this machine: the one before it ends. At start. */
int keys_set_local(struct keys *k, const char *text, struct error *e);
/* Adds a key that was given at start: it is not stored, and goes with the option. */
int keys_add_option(struct keys *k, const char *tenant, enum key_scope scope, const char *text,
	struct error *e);
/* The text of this mark is not good any more. Called from the loop, or inside of a change. */
void keys_on_end(struct keys *k, void (*ended)(void *arg, const char *mark), void *arg);

/* ---- admission ---- */

/* A grant points at the key's texts: valid until the next call about keys. */
struct key_grant {
	const char *id, *tenant, *mark;
	enum key_scope scope;
};
/* Notes the use. Returns -ENOENT if there is no such key, -EKEYEXPIRED if its time is over. */
int keys_admit(struct keys *k, const char *text, struct key_grant *ret);
/* Admits by the mark of the key's text. */
int keys_admit_mark(struct keys *k, const char *mark, struct key_grant *ret);
/* Calls until `matches` says so: with each mark of a tenant's keys that are good. */
bool keys_search_marks(struct keys *k, const char *tenant,
	bool (*matches)(void *arg, const char *mark), void *arg);

/* ---- looking ---- */

/*
 * Calls `each` with the keys of a tenant, or of all if it is NULL, in the order of their creation
 * within a tenant.
 */
void keys_each(struct keys *k, const char *tenant,
	bool (*each)(void *arg, const struct key_record *record), void *arg);
/* By id or name, among those of a tenant; by id among all if it is NULL. NULL: there is none. */
struct key *keys_find(struct keys *k, const char *tenant, const char *id_or_name);
/* The record's texts are the key's. */
void key_view(const struct key *key, struct key_record *ret);

/* ---- changes ---- */

/* text: what opens it, this once; NULL of a failure, whose reason is *e. */
typedef void key_made_fn(
	void *arg, const struct key_record *record, const char *text, const struct error *e);
/* Creates a key from the request's name, tenant, scope and life_ms. Calls back, now or later. */
void key_create(struct keys *k, const struct key_record *request, key_made_fn *made, void *arg);
/*
 * A new text, the same key. The old text stays good for grace_ms. life_ms: from now on, or 0 for
 * what it had.
 */
void key_rotate(struct key *key, int64_t grace_ms, int64_t life_ms, key_made_fn *made, void *arg);
/* Revokes a key: it is refused at once, and removed when `done` is called without an error. */
void key_revoke(struct key *key, void (*done)(void *arg, const struct error *e), void *arg);
