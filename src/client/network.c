/*
 * Changes a sandbox's network by single rules: reads the settings, changes them, writes them back.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/failure.h"
#include "client/sandbox.h"

static cJSON *network_list(cJSON *network, const char *name)
{
	cJSON *list = cJSON_GetObjectItemCaseSensitive(network, name);
	return list ? list : cJSON_AddArrayToObject(network, name);
}

/* Returns whether it was there. */
static bool network_take_out(cJSON *network, const char *name, const char *rule)
{
	cJSON *list = cJSON_GetObjectItemCaseSensitive(network, name), *item = NULL, *next;
	bool found = false;
	for (item = list ? list->child : NULL; item; item = next) {
		next = item->next;
		if (cJSON_IsString(item) && strcmp(item->valuestring, rule) == 0) {
			cJSON_Delete(cJSON_DetachItemViaPointer(list, item));
			found = true;
		}
	}
	return found;
}

/* A sandbox that reaches nothing gets a list; one that reaches everything has no need of it. */
static void network_allow(cJSON *network, const char *mode, const char *rule)
{
	if (strcmp(mode, "open") == 0)
		return;
	if (strcmp(mode, "none") == 0)
		cJSON_ReplaceItemInObjectCaseSensitive(
			network, "mode", cJSON_CreateString("allow"));
	network_take_out(network, "deny", rule);
	network_take_out(network, "allow", rule);
	cJSON_AddItemToArray(network_list(network, "allow"), cJSON_CreateString(rule));
}

/*
 * Where a list says what is allowed, the rule is taken out of it. One that is not there may still
 * be allowed by a wider one, a preset or a wildcard: it is not for us to say that it is denied.
 */
static int network_deny(cJSON *network, const char *mode, const char *rule, struct bunker_error *e)
{
	bool found = network_take_out(network, "allow", rule);
	if (strcmp(mode, "allow") == 0 && !found)
		return client_fail(e, "not_found",
			"'%s' is no entry of the sandbox's allow list; deny the entry that names it, or "
			"nothing, if none does",
			rule);
	if (strcmp(mode, "none") == 0 || strcmp(mode, "allow") == 0)
		return 0;
	cJSON_ReplaceItemInObjectCaseSensitive(network, "mode", cJSON_CreateString("deny"));
	network_take_out(network, "deny", rule);
	cJSON_AddItemToArray(network_list(network, "deny"), cJSON_CreateString(rule));
	return 0;
}

static int network_call(struct bunker *b, const char *method, const char *id, struct buf *body,
	cJSON **ret, struct bunker_error *e)
{
	autobuf target = {0};
	client_append_sandbox_path(&target, id, "/network");
	return client_call_json(b, method, &target, body, ret, e);
}

int bunker_get_network(
	struct bunker *b, const char *id, struct bunker_json **ret, struct bunker_error *e)
{
	cJSON *network;
	if (network_call(b, "GET", id, NULL, &network, e) < 0)
		return -1;
	*ret = client_answer_to_json(network);
	return 0;
}

int bunker_change_network(struct bunker *b, const char *id, bool allows, const char *const *rules,
	size_t count, struct bunker_json **ret, struct bunker_error *e)
{
	cJSON *network, *changed;
	autobuf body = {0};
	int r = 0;
	if (network_call(b, "GET", id, NULL, &network, e) < 0)
		return -1;
	for (size_t i = 0; i < count && r == 0; i++) {
		const cJSON *mode = cJSON_GetObjectItemCaseSensitive(network, "mode");
		autofree char *copy = strdup(cJSON_IsString(mode) ? mode->valuestring : "");
		if (!copy)
			r = client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
		else if (allows)
			network_allow(network, copy, rules[i]);
		else
			r = network_deny(network, copy, rules[i], e);
	}
	autofree char *text = r == 0 ? cJSON_PrintUnformatted(network) : NULL;
	cJSON_Delete(network);
	if (r == 0 && !text)
		r = client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	if (r < 0)
		return r;
	buf_append_str(&body, text);
	if (network_call(b, "PUT", id, &body, &changed, e) < 0)
		return -1;
	*ret = client_answer_to_json(changed);
	return 0;
}
