/*
 * How keys are made, rotated and taken back. A change is told when it is committed. What takes
 * rights away holds at once, in memory; what gives them waits for the commit.
 */
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/key/key_core.h"
#include "store/keys.h"

/* A change under way, for its callback. */
struct key_change {
	struct key *key;
	key_made_fn *made;
	void (*done)(void *arg, const struct error *e);
	void *arg;
	char text[KEY_TEXT_SIZE];
	uint8_t hash[KEY_HASH_SIZE];
	int64_t grace_ms, expires_ms, rotated_ms;
};

static void key_log(const char *message, const struct key *key)
{
	log_info(message, "key", key->id, "name", key->name, "tenant", key->tenant->name);
}

static struct strings key_hash_bytes(const uint8_t *hash)
{
	return (struct strings){(char *)(uintptr_t)hash, KEY_HASH_SIZE};
}

static void key_change_made(struct key_change *c, const struct error *e)
{
	struct key_record record = {0};
	if (!e)
		key_view(c->key, &record);
	c->made(c->arg, e ? NULL : &record, e ? NULL : c->text, e);
	free(c);
}

/* ---- create ---- */

/* Removes an expired key, so that tenants with short-lived keys need not tidy up. */
static bool key_make_room(struct keys *k, const struct key_tenant *t)
{
	struct key *key;
	DL_FOREACH (t->keys, key) {
		if (key->origin == KEY_CREATED && key->ready && !key->rotating && !key->revoked &&
			key_has_expired(key)) {
			store_delete_key(k->store, key->id, NULL, NULL);
			key_free(key);
			return true;
		}
	}
	return false;
}

static int key_check_room(struct keys *k, const struct key_tenant *t, struct error *e)
{
	if (HASH_CNT(by_id, k->keys) >= KEYS_MAX)
		return error_set(e, ERROR_QUOTA_EXCEEDED,
			"the server has %d API keys, the most it takes", KEYS_MAX);
	if (!t || t->count < KEYS_PER_TENANT || key_make_room(k, t))
		return 0;
	return error_set(e, ERROR_QUOTA_EXCEEDED,
		"the tenant has %d API keys, the most it may have; revoke one", KEYS_PER_TENANT);
}

static int key_check_name(const struct key_tenant *t, const char *name, struct error *e)
{
	const struct key *key;
	if (id_is_valid(name))
		return error_set_field(e, ERROR_INVALID_FIELD, "name",
			"\"name\" looks like an id; choose another");
	if (!t)
		return 0;
	DL_FOREACH (t->keys, key)
		if (strcmp(key->name, name) == 0)
			return error_set_field(e, ERROR_NAME_TAKEN, "name",
				"the tenant has an API key of this name");
	return 0;
}

static void key_create_stored(void *arg, int error)
{
	struct key_change *c = arg;
	struct error e = {0};
	if (error) {
		store_error(&e, error, "the API key could not be stored");
		key_free(c->key);
		key_change_made(c, &e);
		return;
	}
	c->key->ready = true;
	key_log("an API key was created", c->key);
	keys_schedule(c->key->keys);
	key_change_made(c, NULL);
}

static struct key *key_create_new(struct keys *k, const struct key_record *request)
{
	struct key_record record = *request;
	char id[ID_SIZE];
	id_generate(id);
	record.id = id;
	record.origin = KEY_CREATED;
	record.created_ms = clock_wall_ms();
	record.expires_ms = request->life_ms ? record.created_ms + request->life_ms : 0;
	return key_new(k, &record);
}

void key_create(struct keys *k, const struct key_record *request, key_made_fn *made, void *arg)
{
	struct key_tenant *t = NULL;
	struct error e = {0};
	HASH_FIND(by_name, k->tenants, request->tenant, strlen(request->tenant), t);
	if (key_check_name(t, request->name, &e) < 0 || key_check_room(k, t, &e) < 0) {
		made(arg, NULL, NULL, &e);
		return;
	}
	struct key_change *c = mem_new(sizeof *c);
	*c = (struct key_change){.key = key_create_new(k, request), .made = made, .arg = arg};
	key_text_generate(c->text);
	key_text_hash(c->text, c->hash);
	c->key->current = key_secret_new(c->key, c->hash);
	struct key_record row;
	key_view(c->key, &row);
	row.hash = key_hash_bytes(c->hash);
	store_put_key(k->store, &row, key_create_stored, c);
}

/* ---- what was not made here cannot be changed here ---- */

static int key_check_origin(const struct key *key, struct error *e)
{
	if (key->origin == KEY_LOCAL)
		return error_set(e, ERROR_NOT_SUPPORTED,
			"this is the server's local key: remove the file api-key from its data directory "
			"and restart it. That makes a new one, and ends this one");
	if (key->origin == KEY_OPTION)
		return error_set(e, ERROR_NOT_SUPPORTED,
			"this key was given by --api-key: it ends when the server is started without it");
	return 0;
}

/* ---- rotate ---- */

static void key_rotate_apply(struct key_change *c)
{
	struct key *key = c->key;
	key_secret_end(&key->previous);
	key->previous = take_ptr(key->current);
	key->current = key_secret_new(key, c->hash);
	key->previous_ms = c->grace_ms ? c->rotated_ms + c->grace_ms : 0;
	if (key->previous_ms <= clock_wall_ms()) {
		key->previous_ms = 0;
		key_secret_end(&key->previous);
	}
	key->rotated_ms = c->rotated_ms;
	key->expires_ms = c->expires_ms;
	key->told = false;
	key_log("an API key was rotated", key);
	keys_schedule(key->keys);
}

static void key_rotate_stored(void *arg, int error)
{
	struct key_change *c = arg;
	struct error e = {0};
	c->key->rotating = false;
	if (error)
		store_error(&e, error, "the new API key could not be stored; the old one is good");
	else if (c->key->revoked)
		error = error_set(&e, ERROR_NOT_FOUND, "the API key was revoked meanwhile");
	else
		key_rotate_apply(c);
	key_change_made(c, error ? &e : NULL);
}

static int key_check_rotate(const struct key *key, int64_t life_ms, struct error *e)
{
	if (key_check_origin(key, e) < 0)
		return -1;
	if (key->rotating)
		return error_set(e, ERROR_IN_USE, "the API key is being rotated");
	if (life_ms == 0 && key_has_expired(key))
		return error_set_field(e, ERROR_MISSING_FIELD, "expiresIn",
			"the API key has expired: say how long the new one is to be good");
	return 0;
}

void key_rotate(struct key *key, int64_t grace_ms, int64_t life_ms, key_made_fn *made, void *arg)
{
	struct error e = {0};
	struct key_record row;
	if (key_check_rotate(key, life_ms, &e) < 0) {
		made(arg, NULL, NULL, &e);
		return;
	}
	int64_t now = clock_wall_ms();
	struct key_change *c = mem_new(sizeof *c);
	*c = (struct key_change){.key = key,
		.made = made,
		.arg = arg,
		.grace_ms = grace_ms,
		.rotated_ms = now,
		.expires_ms = life_ms ? now + life_ms : key->expires_ms};
	key->rotating = true;
	key_text_generate(c->text);
	key_text_hash(c->text, c->hash);
	key_view(key, &row);
	row.hash = key_hash_bytes(c->hash);
	row.previous = grace_ms ? key_hash_bytes(key->current->hash) : (struct strings){0};
	row.previous_ms = grace_ms ? now + grace_ms : 0;
	row.rotated_ms = now;
	row.expires_ms = c->expires_ms;
	store_put_key(key->keys->store, &row, key_rotate_stored, c);
}

/* ---- revoke ---- */

static void key_revoke_stored(void *arg, int error)
{
	struct key_change *c = arg;
	struct error e = {0};
	c->key->leaving = false;
	if (error)
		store_error(&e, error,
			"the API key is refused from now on, but that could not be stored; try again");
	else
		key_free(c->key);
	c->done(c->arg, error ? &e : NULL);
	free(c);
}

void key_revoke(struct key *key, void (*done)(void *arg, const struct error *e), void *arg)
{
	struct error e = {0};
	if (key_check_origin(key, &e) < 0) {
		done(arg, &e);
		return;
	}
	struct key_change *c = mem_new(sizeof *c);
	*c = (struct key_change){.key = key, .done = done, .arg = arg};
	key->revoked = key->leaving = true;
	key_log("an API key was revoked", key);
	key_tell_end(key);
	store_delete_key(key->keys->store, key->id, key_revoke_stored, c);
}
