#include "server/keyring.h"

#include <stdio.h>
#include <string.h>

/* "KEY", of the tenant that the server belongs to, or "TENANT=KEY". */
static int keyring_add_option(struct keys *k, const char *text, struct error *e)
{
	char tenant[KEY_TENANT_MAX + 1] = KEY_SERVER_TENANT;
	const char *equals = strchr(text, '=');
	if (equals && (equals == text || equals - text > KEY_TENANT_MAX))
		return error_set(e, ERROR_INVALID_REQUEST,
			"the name of a tenant, before the '=' of an API key, must have 1 to %d bytes",
			KEY_TENANT_MAX);
	if (equals)
		snprintf(tenant, sizeof tenant, "%.*s", (int)(equals - text), text);
	bool is_ours = strcmp(tenant, KEY_SERVER_TENANT) == 0;
	return keys_add_option(
		k, tenant, is_ours ? KEY_ADMIN : KEY_USE, equals ? equals + 1 : text, e);
}

int keyring_open(struct keys **ret, uv_loop_t *loop, struct store *store, const struct config *c,
	const char *local_key, struct error *e)
{
	if (keys_open(ret, loop, store, e) < 0 || keys_set_local(*ret, local_key, e) < 0)
		return -1;
	for (size_t i = 0; i < c->key_count; i++)
		if (keyring_add_option(*ret, c->keys[i], e) < 0)
			return -1;
	return 0;
}

static int keyring_grant(int r, const struct key_grant *grant, struct auth_grant *ret)
{
	static const enum http_scope scopes[] = {[KEY_READ] = HTTP_SCOPE_READ,
		[KEY_USE] = HTTP_SCOPE_USE,
		[KEY_ADMIN] = HTTP_SCOPE_ADMIN};
	if (r == 0)
		*ret = (struct auth_grant){grant->tenant, grant->mark, scopes[grant->scope]};
	return r;
}

static int keyring_admit(void *arg, const char *key, struct auth_grant *ret)
{
	struct key_grant grant = {0};
	return keyring_grant(keys_admit(arg, key, &grant), &grant, ret);
}

static int keyring_admit_mark(void *arg, const char *mark, struct auth_grant *ret)
{
	struct key_grant grant = {0};
	return keyring_grant(keys_admit_mark(arg, mark, &grant), &grant, ret);
}

static bool keyring_search_marks(void *arg, const char *tenant,
	bool (*matches)(void *match_arg, const char *mark), void *match_arg)
{
	return keys_search_marks(arg, tenant, matches, match_arg);
}

struct auth_keys keyring_for_auth(struct keys *k)
{
	return (struct auth_keys){keyring_admit, keyring_admit_mark, keyring_search_marks, k};
}

static void keyring_cut(void *arg, const char *mark)
{
	http_server_cut(arg, auth_is_marked, (void *)(uintptr_t)mark);
}

void keyring_serve(struct keys *k, struct http_server *http)
{
	keys_on_end(k, http ? keyring_cut : NULL, http);
}
