#include "box/sandbox/secret_use.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/mem.h"
#include "box/sandbox/brokering.h"
#include "box/sandbox/object.h"
#include "box/vault/vault.h"

static bool secret_is_used_by(const struct sandbox *s, const char *tenant, const char *name)
{
	return strcmp(s->tenant, tenant) == 0 && !s->ending.doomed &&
	       rules_name_secret(&s->network.rules, name);
}

static int64_t secret_use_count(const struct box *b, const char *tenant, const char *name)
{
	const struct sandbox *s;
	int64_t count = 0;
	DL_FOREACH (b->sandboxes.order, s)
		count += secret_is_used_by(s, tenant, name);
	return count;
}

bool secret_use_get(struct box *b, const char *tenant, const char *name, struct secret_record *ret)
{
	const struct secret *secret = vault_find(b->vault, tenant, name);
	if (!secret)
		return false;
	secret_view(secret, ret);
	ret->sandboxes = secret_use_count(b, tenant, name);
	return true;
}

struct secret_use_listing {
	struct box *box;
	bool (*each)(void *arg, const struct secret_record *record);
	void *arg;
};

static bool secret_use_list_one(void *arg, const struct secret_record *record)
{
	const struct secret_use_listing *l = arg;
	struct secret_record shown = *record;
	shown.sandboxes = secret_use_count(l->box, record->tenant, record->name);
	return l->each(l->arg, &shown);
}

void secret_use_each(struct box *b, const char *tenant,
	bool (*each)(void *arg, const struct secret_record *record), void *arg)
{
	vault_each(
		b->vault, tenant, secret_use_list_one, &(struct secret_use_listing){b, each, arg});
}

/* ---- a new value ---- */

struct secret_use_change {
	struct box *box;
	char *tenant;
	char name[SECRET_NAME_MAX + 1];
	unsigned pending; /* sandboxes whose brokers are being told, and one until all are asked */
	bool failed;
	struct error error;
	sandbox_done_fn *done;
	void *arg;
};

static void secret_use_told(void *arg, const struct error *e)
{
	struct secret_use_change *c = arg;
	if (e && !c->failed) {
		c->failed = true;
		error_set(&c->error, e->code,
			"the value is stored, but not in force everywhere yet: %.200s", e->message);
	}
	if (--c->pending > 0)
		return;
	c->done(c->arg, c->failed ? &c->error : NULL);
	free(c->tenant);
	free(c);
}

static void secret_use_stored(void *arg, const struct error *e)
{
	struct secret_use_change *c = arg;
	struct sandbox *s, *next;
	c->pending = 1;
	if (e) {
		c->failed = true;
		c->error = *e;
	}
	DL_FOREACH_SAFE (c->box->sandboxes.order, s, next) {
		if (e || !s->brokered || !secret_is_used_by(s, c->tenant, c->name))
			continue;
		c->pending++;
		brokering_apply(s, secret_use_told, c);
	}
	secret_use_told(c, NULL);
}

static int secret_use_check_put(
	struct box *b, const char *tenant, const char *name, const char *value, struct error *e)
{
	const struct sandbox *s;
	if (secret_check_name(name, "name", e) < 0)
		return -1;
	DL_FOREACH (b->sandboxes.order, s) {
		struct error why;
		if (!secret_is_used_by(s, tenant, name) ||
			brokering_check_value(
				b, tenant, &s->network.rules, name, strlen(value), &why) == 0 ||
			why.code != ERROR_INVALID_FIELD)
			continue;
		return error_set_field(e, ERROR_INVALID_FIELD, "value",
			"\"value\" is too long for the rules of the sandbox %s, which name it",
			s->id);
	}
	return 0;
}

void secret_use_put(struct box *b, const char *tenant, const char *name, const char *value,
	sandbox_done_fn *done, void *arg)
{
	struct error e = {0};
	if (secret_use_check_put(b, tenant, name, value, &e) < 0) {
		done(arg, &e);
		return;
	}
	struct secret_use_change *c = mem_new(sizeof *c);
	*c = (struct secret_use_change){
		.box = b, .tenant = mem_copy_text(tenant), .done = done, .arg = arg};
	memcpy(c->name, name, strlen(name) + 1);
	vault_put(b->vault, tenant, name, value, secret_use_stored, c);
}

void secret_use_delete(
	struct box *b, const char *tenant, const char *name, sandbox_done_fn *done, void *arg)
{
	struct error e = {0};
	struct secret *secret = vault_find(b->vault, tenant, name);
	int64_t users = secret ? secret_use_count(b, tenant, name) : 0;
	if (secret && users == 0) {
		vault_delete(secret, done, arg);
		return;
	}
	if (secret)
		error_set(&e, ERROR_IN_USE, "%lld sandboxes have a rule that names the secret",
			(long long)users);
	else
		error_set(&e, ERROR_NOT_FOUND, "there is no such secret");
	done(arg, &e);
}
