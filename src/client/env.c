/* The environment of a sandbox: what everything started there begins with. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/failure.h"
#include "client/sandbox.h"
#include "json/json.h"

static int call_env(struct bunker *b, const char *method, const char *sandbox_id,
	const struct buf *body, struct bunker_env *ret, struct bunker_error *e)
{
	autobuf target = {0};
	autojson *tree = NULL;
	struct bunker_env env = {0};
	client_append_sandbox_path(&target, sandbox_id, "/env");
	int r = client_call_json(b, method, &target, body, &tree, e);
	if (r < 0)
		return r;
	if (client_answer_pairs(tree, &env.items, &env.count) < 0)
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	env.json = client_answer_to_json(take_ptr(tree));
	*ret = env;
	return 0;
}

int bunker_env_get(
	struct bunker *b, const char *sandbox_id, struct bunker_env *ret, struct bunker_error *e)
{
	return call_env(b, "GET", sandbox_id, NULL, ret, e);
}

int bunker_env_change(struct bunker *b, const char *sandbox_id, const struct bunker_pair *changes,
	size_t count, struct bunker_env *ret, struct bunker_error *e)
{
	autobuf body = {0};
	struct json_writer w = {.out = &body};
	json_begin_object(&w);
	for (size_t i = 0; i < count; i++)
		json_put_string(&w, changes[i].name, changes[i].value);
	json_end_object(&w);
	return call_env(b, "PATCH", sandbox_id, &body, ret, e);
}

void bunker_env_finish(struct bunker_env *env)
{
	free(env->items);
	cJSON_Delete(client_answer_from_json(env->json));
	*env = (struct bunker_env){0};
}
