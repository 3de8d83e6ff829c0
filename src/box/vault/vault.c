#include "box/vault/vault.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/secrets.h"

struct vault_tenant;

struct secret {
	struct vault *vault;
	struct vault_tenant *tenant;
	struct secret *prev, *next; /* of the tenant's, by name */
	char id[ID_SIZE];
	char name[SECRET_NAME_MAX + 1];
	int64_t created_ms, updated_ms;
	struct strings sealed;
	bool stored;   /* its row is committed */
	bool changing; /* a row is on its way */
	bool readable;
};

struct vault_tenant {
	struct vault_tenant *next;
	struct secret *secrets;
	unsigned count;
	char *name;
};

struct vault {
	struct store *store;
	struct vault_tenant *tenants;
	unsigned unreadable;
	bool has_key;
	uint8_t key[SEAL_KEY_SIZE];
};

void vault_wipe(struct buf *b)
{
	if (b->data)
		sodium_memzero(b->data, b->cap);
	buf_finish(b);
}

/* ---- objects ---- */

static struct vault_tenant *vault_tenant(struct vault *v, const char *name)
{
	struct vault_tenant *t = v->tenants;
	while (t && strcmp(t->name, name) != 0)
		t = t->next;
	return t;
}

static struct vault_tenant *vault_add_tenant(struct vault *v, const char *name)
{
	struct vault_tenant *t = vault_tenant(v, name);
	if (t)
		return t;
	t = mem_new(sizeof *t);
	t->name = mem_copy_text(name);
	LL_PREPEND(v->tenants, t);
	return t;
}

static int secret_compare_names(const struct secret *a, const struct secret *b)
{
	return strcmp(a->name, b->name);
}

static struct secret *secret_new(struct vault *v, const char *tenant, const char *name)
{
	struct secret *s = mem_new(sizeof *s);
	s->vault = v;
	s->tenant = vault_add_tenant(v, tenant);
	snprintf(s->name, sizeof s->name, "%s", name);
	s->tenant->count++;
	DL_INSERT_INORDER(s->tenant->secrets, s, secret_compare_names);
	return s;
}

static void secret_free(struct secret *s)
{
	struct vault_tenant *t = s->tenant;
	s->vault->unreadable -= s->stored && !s->readable;
	DL_DELETE(t->secrets, s);
	t->count--;
	free(s->sealed.data);
	if (t->count == 0) {
		LL_DELETE(s->vault->tenants, t);
		free(t->name);
		free(t);
	}
	free(s);
}

static struct seal_place secret_place(const struct secret *s)
{
	return (struct seal_place){"secret", s->tenant->name, s->name};
}

int secret_read(const struct secret *s, struct buf *out)
{
	const struct seal_place place = secret_place(s);
	if (!s->vault->has_key || s->sealed.len < SEAL_OVERHEAD)
		return -EBADMSG;
	size_t len = s->sealed.len - SEAL_OVERHEAD;
	if (!buf_reserve(out, len + 1))
		return -ENOMEM;
	if (seal_open(s->vault->key, &place, &s->sealed, out->data + out->len) < 0)
		return -EBADMSG;
	out->len += len;
	return 0;
}

static bool secret_is_readable(const struct secret *s)
{
	wipedbuf value = {0};
	return secret_read(s, &value) == 0;
}

struct secret *vault_find(struct vault *v, const char *tenant, const char *name)
{
	const struct vault_tenant *t = vault_tenant(v, tenant);
	struct secret *s = t ? t->secrets : NULL;
	while (s && strcmp(s->name, name) != 0)
		s = s->next;
	return s && s->stored ? s : NULL;
}

void secret_view(const struct secret *s, struct secret_record *ret)
{
	*ret = (struct secret_record){.tenant = s->tenant->name,
		.name = s->name,
		.created_ms = s->created_ms,
		.updated_ms = s->updated_ms,
		.readable = s->readable,
		.sealed = s->sealed};
	memcpy(ret->id, s->id, ID_SIZE);
}

void vault_each(struct vault *v, const char *tenant,
	bool (*each)(void *arg, const struct secret_record *record), void *arg)
{
	const struct vault_tenant *t = vault_tenant(v, tenant);
	const struct secret *s;
	struct secret_record record;
	DL_FOREACH (t ? t->secrets : NULL, s) {
		if (!s->stored)
			continue;
		secret_view(s, &record);
		if (!each(arg, &record))
			return;
	}
}

/* ---- changes ---- */

struct vault_change {
	struct secret *secret;
	struct strings sealed;
	int64_t updated_ms;
	vault_done_fn *done;
	void *arg;
};

static void vault_log(const char *message, const struct secret *s)
{
	log_info(message, "secret", s->name, "tenant", s->tenant->name);
}

static void vault_change_end(struct vault_change *c, const struct error *e)
{
	free(c->sealed.data);
	c->done(c->arg, e);
	free(c);
}

static void vault_put_stored(void *arg, int error)
{
	struct vault_change *c = arg;
	struct secret *s = c->secret;
	struct error e = {0};
	s->changing = false;
	if (error) {
		store_error(&e, error, "the secret could not be stored");
		if (!s->stored)
			secret_free(s);
		vault_change_end(c, &e);
		return;
	}
	free(s->sealed.data);
	s->sealed = c->sealed;
	c->sealed = (struct strings){0};
	s->updated_ms = c->updated_ms;
	vault_log(s->stored ? "a secret was given another value" : "a secret was made", s);
	s->stored = s->readable = true;
	vault_change_end(c, NULL);
}

static int vault_check_put(const struct vault *v, const struct vault_tenant *t,
	const struct secret *s, struct error *e)
{
	if (!v->has_key)
		return error_set(e, ERROR_UNAVAILABLE,
			"the server was started without its key for secrets; see its log");
	if (v->unreadable > 0)
		return error_set(e, ERROR_UNAVAILABLE,
			"%u stored secrets cannot be opened with the server's key: restore the key, or "
			"delete them",
			v->unreadable);
	if (s && s->changing)
		return error_set(e, ERROR_IN_USE, "the secret is being changed");
	if (!s && t && t->count >= SECRETS_PER_TENANT)
		return error_set(e, ERROR_QUOTA_EXCEEDED,
			"the tenant has %d secrets, the most it may have; delete one",
			SECRETS_PER_TENANT);
	return 0;
}

static struct secret *vault_take(struct vault *v, const char *tenant, const char *name)
{
	struct vault_tenant *t = vault_tenant(v, tenant);
	struct secret *s = t ? t->secrets : NULL;
	while (s && strcmp(s->name, name) != 0)
		s = s->next;
	return s;
}

void vault_put(struct vault *v, const char *tenant, const char *name, const char *value,
	vault_done_fn *done, void *arg)
{
	struct error e = {0};
	struct secret *s = vault_take(v, tenant, name);
	if (vault_check_put(v, vault_tenant(v, tenant), s, &e) < 0) {
		done(arg, &e);
		return;
	}
	if (!s) {
		s = secret_new(v, tenant, name);
		id_generate(s->id);
		s->created_ms = clock_wall_ms();
	}
	s->changing = true;
	const struct seal_place place = secret_place(s);
	struct vault_change *c = mem_new(sizeof *c);
	*c = (struct vault_change){.secret = s,
		.sealed = seal_value(v->key, &place, value, strlen(value)),
		.updated_ms = clock_wall_ms(),
		.done = done,
		.arg = arg};
	struct secret_record row;
	secret_view(s, &row);
	row.sealed = c->sealed;
	row.updated_ms = c->updated_ms;
	store_put_secret(v->store, &row, vault_put_stored, c);
}

static void vault_delete_stored(void *arg, int error)
{
	struct vault_change *c = arg;
	struct error e = {0};
	c->secret->changing = false;
	if (error) {
		store_error(&e, error, "the secret could not be deleted");
	} else {
		vault_log("a secret was deleted", c->secret);
		secret_free(c->secret);
	}
	vault_change_end(c, error ? &e : NULL);
}

void vault_delete(struct secret *s, vault_done_fn *done, void *arg)
{
	struct error e = {0};
	if (s->changing) {
		error_set(&e, ERROR_IN_USE, "the secret is being changed");
		done(arg, &e);
		return;
	}
	s->changing = true;
	struct vault_change *c = mem_new(sizeof *c);
	*c = (struct vault_change){.secret = s, .done = done, .arg = arg};
	store_delete_secret(s->vault->store, s->id, vault_delete_stored, c);
}

/* ---- authorities ---- */

int vault_seal_authority(
	struct vault *v, const char *sandbox, const struct authority *a, struct strings *ret)
{
	const struct seal_place place = {"authority", sandbox, ""};
	if (!v->has_key)
		return -ENOKEY;
	struct strings packed = authority_pack(a);
	*ret = seal_value(v->key, &place, packed.data, packed.len);
	sodium_memzero(packed.data, packed.len);
	free(packed.data);
	return 0;
}

int vault_open_authority(
	struct vault *v, const char *sandbox, const struct strings *sealed, struct authority *ret)
{
	const struct seal_place place = {"authority", sandbox, ""};
	if (!v->has_key)
		return -ENOKEY;
	if (sealed->len < SEAL_OVERHEAD)
		return -EBADMSG;
	struct strings packed = {
		mem_new(sealed->len - SEAL_OVERHEAD + 1), sealed->len - SEAL_OVERHEAD};
	int r = seal_open(v->key, &place, sealed, packed.data);
	if (r == 0)
		r = authority_unpack(&packed, ret);
	sodium_memzero(packed.data, packed.len);
	free(packed.data);
	return r;
}

/* ---- begin and end ---- */

static void vault_load(void *arg, const void *row)
{
	struct vault *v = arg;
	const struct secret_record *record = row;
	struct secret *s = secret_new(v, record->tenant, record->name);
	memcpy(s->id, record->id, ID_SIZE);
	s->created_ms = record->created_ms;
	s->updated_ms = record->updated_ms;
	s->sealed = (struct strings){
		mem_copy(record->sealed.data, record->sealed.len), record->sealed.len};
	s->stored = true;
	s->readable = secret_is_readable(s);
	v->unreadable += !s->readable;
}

int vault_open(
	struct vault **ret, struct store *store, const uint8_t key[SEAL_KEY_SIZE], struct error *e)
{
	struct vault *v = mem_new(sizeof *v);
	v->store = store;
	v->has_key = key != NULL;
	if (key)
		memcpy(v->key, key, SEAL_KEY_SIZE);
	if (store_each_secret(store, vault_load, v) < 0) {
		vault_close(v);
		return error_set(e, ERROR_INTERNAL, "cannot read the secrets from the database");
	}
	if (v->unreadable > 0)
		log_error(
			"stored secrets cannot be opened: this is not the key that they were stored under; "
			"start the server with that key, or delete them. Until then no secret is taken, and "
			"sandboxes whose rules need them have no network",
			"secrets", log_num(v->unreadable));
	*ret = v;
	return 0;
}

void vault_close(struct vault *v)
{
	if (!v)
		return;
	while (v->tenants)
		secret_free(v->tenants->secrets);
	sodium_memzero(v->key, sizeof v->key);
	free(v);
}
