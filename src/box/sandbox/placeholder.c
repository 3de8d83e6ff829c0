#include "box/sandbox/placeholder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/id.h"
#include "box/sandbox/object.h"
#include "box/vault/vault.h"

static int placeholder_check_variable(
	struct box *b, const char *tenant, const char *variable, struct error *e)
{
	char name[SECRET_NAME_MAX + 1];
	const char *at = variable, *begin;
	int len = (int)strcspn(variable, "="), found;
	while ((found = secret_find_reference(&at, &begin, name)) > 0)
		if (!vault_find(b->vault, tenant, name))
			return error_set_field(e, ERROR_INVALID_FIELD, "env",
				"\"env.%.*s\": there is no secret '%s'", len > 64 ? 64 : len,
				variable, name);
	if (found < 0)
		return error_set_field(e, ERROR_INVALID_FIELD, "env",
			"\"env.%.*s\": a secret is named as ${secret:NAME}", len > 64 ? 64 : len,
			variable);
	return 0;
}

int placeholder_check(struct box *b, const char *tenant, const struct strings *env, struct error *e)
{
	for (size_t at = 0; at < env->len; at += strlen(env->data + at) + 1)
		if (placeholder_check_variable(b, tenant, env->data + at, e) < 0)
			return -1;
	return 0;
}

const char *placeholder_split(const char *entry, char secret[SECRET_NAME_MAX + 1])
{
	size_t len = strcspn(entry, "=");
	if (len > SECRET_NAME_MAX || !entry[len])
		return NULL;
	memcpy(secret, entry, len);
	secret[len] = '\0';
	return entry + len + 1;
}

static const char *placeholder_find(const struct sandbox *s, const char *secret)
{
	const struct strings *all = &s->placeholders;
	char name[SECRET_NAME_MAX + 1];
	for (size_t at = 0; at < all->len; at += strlen(all->data + at) + 1) {
		const char *text = placeholder_split(all->data + at, name);
		if (text && strcmp(name, secret) == 0)
			return text;
	}
	return NULL;
}

static const char *placeholder_make(struct sandbox *s, const char *secret)
{
	char id[ID_SIZE];
	autobuf all = {0};
	id_generate(id);
	if (s->placeholders.len > 0)
		buf_append(&all, s->placeholders.data, s->placeholders.len);
	buf_printf(&all, "%s=" PLACEHOLDER_PREFIX "%s", secret, id);
	buf_append_char(&all, '\0');
	buf_require(&all);
	free(s->placeholders.data);
	s->placeholders = (struct strings){all.data, all.len};
	all = (struct buf){0};
	return placeholder_find(s, secret);
}

static void placeholder_put_variable(struct sandbox *s, const char *variable, struct buf *out)
{
	char name[SECRET_NAME_MAX + 1];
	const char *at = variable, *from = variable, *begin;
	while (secret_find_reference(&at, &begin, name) > 0) {
		const char *text = placeholder_find(s, name);
		buf_append(out, from, (size_t)(begin - from));
		buf_append_str(out, text ? text : placeholder_make(s, name));
		from = at;
	}
	buf_append(out, from, strlen(from) + 1);
}

static bool placeholder_is_wanted(const struct strings *env)
{
	for (size_t at = 0; at < env->len; at += strlen(env->data + at) + 1)
		if (strstr(env->data + at, SECRET_REFERENCE))
			return true;
	return false;
}

bool placeholder_settle(struct sandbox *s, struct strings *env)
{
	autobuf out = {0};
	if (!placeholder_is_wanted(env))
		return false;
	for (size_t at = 0; at < env->len; at += strlen(env->data + at) + 1)
		placeholder_put_variable(s, env->data + at, &out);
	buf_require(&out);
	free(env->data);
	*env = (struct strings){out.data, out.len};
	out = (struct buf){0};
	return true;
}
