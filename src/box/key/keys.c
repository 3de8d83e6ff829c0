#include "box/key/keys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/key/key_core.h"
#include "store/keys.h"

#define USE_GRAIN_MS INT64_C(60000)
/* However far the next end is: the clock of the wall may be set. */
#define LOOK_MAX_MS INT64_C(60000)

/* ---- objects ---- */

static struct key_tenant *keys_tenant(struct keys *k, const char *name)
{
	struct key_tenant *t = NULL;
	HASH_FIND(by_name, k->tenants, name, strlen(name), t);
	return t;
}

static struct key_tenant *keys_add_tenant(struct keys *k, const char *name)
{
	struct key_tenant *t = keys_tenant(k, name);
	if (t)
		return t;
	t = mem_new(sizeof *t);
	snprintf(t->name, sizeof t->name, "%s", name);
	HASH_ADD(by_name, k->tenants, name[0], strlen(t->name), t);
	return t;
}

struct key *key_new(struct keys *k, const struct key_record *record)
{
	struct key *key = mem_new(sizeof *key);
	key->keys = k;
	snprintf(key->id, sizeof key->id, "%s", record->id);
	snprintf(key->name, sizeof key->name, "%s", record->name);
	key->scope = record->scope;
	key->origin = record->origin;
	key->created_ms = record->created_ms;
	key->expires_ms = record->expires_ms;
	key->used_ms = record->used_ms;
	key->rotated_ms = record->rotated_ms;
	key->tenant = keys_add_tenant(k, record->tenant);
	key->tenant->count += key->origin == KEY_CREATED;
	DL_APPEND(key->tenant->keys, key);
	HASH_ADD(by_id, k->keys, id, ID_LEN, key);
	return key;
}

void key_free(struct key *key)
{
	struct keys *k = key->keys;
	struct key_tenant *t = key->tenant;
	key_secret_end(&key->current);
	key_secret_end(&key->previous);
	HASH_DELETE(by_id, k->keys, key);
	DL_DELETE(t->keys, key);
	t->count -= key->origin == KEY_CREATED;
	if (!t->keys) {
		HASH_DELETE(by_name, k->tenants, t);
		free(t);
	}
	free(key);
}

struct key_secret *key_secret_new(struct key *key, const uint8_t hash[KEY_HASH_SIZE])
{
	struct keys *k = key->keys;
	struct key_secret *secret = mem_new(sizeof *secret);
	secret->key = key;
	memcpy(secret->hash, hash, KEY_HASH_SIZE);
	key_text_mark(hash, secret->mark);
	HASH_ADD(by_hash, k->by_hash, hash, KEY_HASH_SIZE, secret);
	HASH_ADD(by_mark, k->by_mark, mark, KEY_MARK_SIZE - 1, secret);
	return secret;
}

static void key_secret_tell(const struct key_secret *secret)
{
	const struct keys *k = secret->key->keys;
	if (k->ended && !k->closing)
		k->ended(k->ended_arg, secret->mark);
}

void key_secret_end(struct key_secret **secret)
{
	struct key_secret *s = *secret;
	if (!s)
		return;
	struct keys *k = s->key->keys;
	*secret = NULL;
	HASH_DELETE(by_hash, k->by_hash, s);
	HASH_DELETE(by_mark, k->by_mark, s);
	key_secret_tell(s);
	free(s);
}

void key_tell_end(const struct key *key)
{
	key_secret_tell(key->current);
	if (key->previous)
		key_secret_tell(key->previous);
}

void keys_on_end(struct keys *k, void (*ended)(void *arg, const char *mark), void *arg)
{
	k->ended = ended;
	k->ended_arg = arg;
}

/* ---- ends ---- */

bool key_has_expired(const struct key *key)
{
	return key->expires_ms > 0 && key->expires_ms <= clock_wall_ms();
}

static bool key_is_good(const struct key *key)
{
	return key->ready && !key->revoked && !key_has_expired(key);
}

/* An expired key stays, for those who look, but its texts are told. */
static void key_look(struct key *key)
{
	if (key->previous && key->previous_ms <= clock_wall_ms()) {
		key->previous_ms = 0;
		key_secret_end(&key->previous);
	}
	if (key->told || !key_has_expired(key))
		return;
	key->told = true;
	log_info("an API key has expired", "key", key->id, "name", key->name, "tenant",
		key->tenant->name);
	key_tell_end(key);
}

static void keys_look(uv_timer_t *timer)
{
	struct keys *k = timer->data;
	struct key *key, *next;
	HASH_ITER (by_id, k->keys, key, next)
		key_look(key);
	keys_schedule(k);
}

static void key_sooner(int64_t at, int64_t *soonest)
{
	if (at > 0 && (*soonest == 0 || at < *soonest))
		*soonest = at;
}

void keys_schedule(struct keys *k)
{
	const struct key *key, *next;
	int64_t soonest = 0, now = clock_wall_ms();
	if (k->closing)
		return;
	HASH_ITER (by_id, k->keys, key, next) {
		key_sooner(key->told ? 0 : key->expires_ms, &soonest);
		key_sooner(key->previous_ms, &soonest);
	}
	if (soonest == 0) {
		uv_timer_stop(&k->due);
		return;
	}
	int64_t wait = soonest > now ? soonest - now : 0;
	uv_timer_start(&k->due, keys_look, (uint64_t)(wait < LOOK_MAX_MS ? wait : LOOK_MAX_MS), 0);
}

/* ---- uses ---- */

static void keys_store_uses(struct keys *k)
{
	struct key *key, *next;
	HASH_ITER (by_id, k->keys, key, next) {
		if (key->unstored && key->ready && key->origin != KEY_OPTION)
			store_put_key_use(k->store, key->id, key->used_ms);
		key->unstored = false;
	}
}

static void keys_use_due(uv_timer_t *timer)
{
	keys_store_uses(timer->data);
}

/* Notes the first use within a minute; the write waits up to a minute for others. */
static void key_note_use(struct key *key)
{
	struct keys *k = key->keys;
	int64_t now = clock_wall_ms();
	if (now - key->used_ms < USE_GRAIN_MS && now >= key->used_ms)
		return;
	key->used_ms = now;
	key->unstored = true;
	if (!k->closing && !uv_is_active((uv_handle_t *)&k->use))
		uv_timer_start(&k->use, keys_use_due, (uint64_t)USE_GRAIN_MS, 0);
}

/* ---- admission ---- */

static int key_secret_admit(const struct key_secret *secret, struct key_grant *ret)
{
	struct key *key = secret ? secret->key : NULL;
	if (!key || !key->ready || key->revoked)
		return -ENOENT;
	bool is_over = secret == key->previous && key->previous_ms <= clock_wall_ms();
	if (is_over || key_has_expired(key))
		return -EKEYEXPIRED;
	key_note_use(key);
	*ret = (struct key_grant){key->id, key->tenant->name, secret->mark, key->scope};
	return 0;
}

int keys_admit(struct keys *k, const char *text, struct key_grant *ret)
{
	uint8_t hash[KEY_HASH_SIZE];
	struct key_secret *secret = NULL;
	if (!key_text_hash(text, hash))
		return -ENOENT;
	HASH_FIND(by_hash, k->by_hash, hash, KEY_HASH_SIZE, secret);
	return key_secret_admit(secret, ret);
}

int keys_admit_mark(struct keys *k, const char *mark, struct key_grant *ret)
{
	struct key_secret *secret = NULL;
	if (strnlen(mark, KEY_MARK_SIZE) == KEY_MARK_SIZE - 1)
		HASH_FIND(by_mark, k->by_mark, mark, KEY_MARK_SIZE - 1, secret);
	return key_secret_admit(secret, ret);
}

bool keys_search_marks(
	struct keys *k, const char *tenant, bool (*matches)(void *arg, const char *mark), void *arg)
{
	const struct key_tenant *t = keys_tenant(k, tenant);
	const struct key *key;
	if (!t)
		return false;
	DL_FOREACH (t->keys, key) {
		/* A key that was never used has no tokens. */
		if (!key_is_good(key) || key->used_ms == 0)
			continue;
		if (matches(arg, key->current->mark) ||
			(key->previous && matches(arg, key->previous->mark)))
			return true;
	}
	return false;
}

/* ---- looking ---- */

void key_view(const struct key *key, struct key_record *ret)
{
	*ret = (struct key_record){.id = key->id,
		.name = key->name,
		.tenant = key->tenant->name,
		.scope = key->scope,
		.origin = key->origin,
		.created_ms = key->created_ms,
		.expires_ms = key->expires_ms,
		.used_ms = key->used_ms,
		.rotated_ms = key->rotated_ms,
		.previous_ms = key->previous_ms};
}

static bool key_is_shown(const struct key *key)
{
	return key->ready && !key->leaving;
}

static bool keys_each_of(const struct key_tenant *t,
	bool (*each)(void *arg, const struct key_record *record), void *arg)
{
	const struct key *key;
	struct key_record record;
	DL_FOREACH (t->keys, key) {
		key_view(key, &record);
		if (key_is_shown(key) && !each(arg, &record))
			return false;
	}
	return true;
}

void keys_each(struct keys *k, const char *tenant,
	bool (*each)(void *arg, const struct key_record *record), void *arg)
{
	const struct key_tenant *t, *next;
	HASH_ITER (by_name, k->tenants, t, next)
		if ((!tenant || strcmp(t->name, tenant) == 0) && !keys_each_of(t, each, arg))
			return;
}

struct key *keys_find(struct keys *k, const char *tenant, const char *id_or_name)
{
	struct key *key = NULL;
	struct key_tenant *t = tenant ? keys_tenant(k, tenant) : NULL;
	HASH_FIND(by_id, k->keys, id_or_name, strlen(id_or_name), key);
	if (key && key_is_shown(key) && (!tenant || key->tenant == t))
		return key;
	if (!t)
		return NULL;
	DL_FOREACH (t->keys, key)
		if (key_is_shown(key) && strcmp(key->name, id_or_name) == 0)
			return key;
	return NULL;
}

/* ---- the beginning and the end ---- */

static void keys_load_row(void *arg, const void *row)
{
	const struct key_record *record = row;
	if (record->hash.len != KEY_HASH_SIZE || !id_is_valid(record->id))
		return;
	struct key *key = key_new(arg, record);
	key->current = key_secret_new(key, (const uint8_t *)record->hash.data);
	if (record->previous.len == KEY_HASH_SIZE && record->previous_ms > clock_wall_ms()) {
		key->previous = key_secret_new(key, (const uint8_t *)record->previous.data);
		key->previous_ms = record->previous_ms;
	}
	key->ready = true;
}

int keys_open(struct keys **ret, uv_loop_t *loop, struct store *store, struct error *e)
{
	struct keys *k = mem_new(sizeof *k);
	k->store = store;
	uv_timer_init(loop, &k->due);
	uv_timer_init(loop, &k->use);
	k->due.data = k->use.data = k;
	k->handles_open = 2;
	*ret = k;
	if (store_each_key(store, keys_load_row, k) < 0)
		return error_set(e, ERROR_INTERNAL, "cannot read the API keys from the database");
	keys_schedule(k);
	return 0;
}

static struct key *keys_find_local(const struct keys *k)
{
	struct key *key, *next;
	HASH_ITER (by_id, k->keys, key, next)
		if (key->origin == KEY_LOCAL)
			return key;
	return NULL;
}

static void keys_store_local(struct keys *k, const struct key *key)
{
	struct key_record row;
	key_view(key, &row);
	row.hash = (struct strings){(char *)(uintptr_t)key->current->hash, KEY_HASH_SIZE};
	store_put_key(k->store, &row, NULL, NULL);
}

int keys_set_local(struct keys *k, const char *text, struct error *e)
{
	uint8_t hash[KEY_HASH_SIZE];
	char id[ID_SIZE];
	struct key *key = keys_find_local(k);
	if (!key_text_hash(text, hash))
		return error_set(e, ERROR_INTERNAL, "the local key is none");
	if (key && memcmp(key->current->hash, hash, sizeof hash) == 0)
		return 0;
	if (key)
		key->rotated_ms = clock_wall_ms();
	id_generate(id);
	if (!key)
		key = key_new(k, &(struct key_record){.id = id,
					 .name = "local",
					 .tenant = KEY_SERVER_TENANT,
					 .scope = KEY_ADMIN,
					 .origin = KEY_LOCAL,
					 .created_ms = clock_wall_ms()});
	key_secret_end(&key->current);
	key->current = key_secret_new(key, hash);
	key->ready = true;
	keys_store_local(k, key);
	return 0;
}

int keys_add_option(
	struct keys *k, const char *tenant, enum key_scope scope, const char *text, struct error *e)
{
	uint8_t hash[KEY_HASH_SIZE];
	char id[ID_SIZE];
	struct key_secret *same = NULL;
	if (!key_text_hash(text, hash))
		return error_set(e, ERROR_INVALID_REQUEST,
			"an API key must have 16 to 128 letters, digits, '-' or '_' (after bnk_ or e2b_)");
	HASH_FIND(by_hash, k->by_hash, hash, KEY_HASH_SIZE, same);
	if (same)
		return 0;
	id_generate(id);
	struct key *key = key_new(k, &(struct key_record){.id = id,
					     .name = "option",
					     .tenant = tenant,
					     .scope = scope,
					     .origin = KEY_OPTION,
					     .created_ms = clock_wall_ms()});
	key->current = key_secret_new(key, hash);
	key->ready = true;
	return 0;
}

static void keys_closed(uv_handle_t *handle)
{
	struct keys *k = handle->data;
	struct key *key, *next;
	if (--k->handles_open > 0)
		return;
	HASH_ITER (by_id, k->keys, key, next)
		key_free(key);
	free(k);
}

void keys_close(struct keys *k)
{
	keys_store_uses(k);
	k->closing = true;
	uv_close((uv_handle_t *)&k->due, keys_closed);
	uv_close((uv_handle_t *)&k->use, keys_closed);
}
