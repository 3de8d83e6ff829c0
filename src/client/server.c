/* Calls about the server itself. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "bunker.h"
#include "client/answer.h"
#include "client/call.h"
#include "client/failure.h"

static const struct answer_field health_fields[] = {
	{"status", ANSWER_STRING, offsetof(struct bunker_health, status)},
	{"version", ANSWER_STRING, offsetof(struct bunker_health, version)},
};

int bunker_health(struct bunker *b, struct bunker_health *ret, struct bunker_error *e)
{
	autobuf target = {0};
	cJSON *tree;
	buf_append_str(&target, "/health");
	int r = client_call_json(b, "GET", &target, NULL, &tree, e);
	if (r < 0)
		return r;
	client_answer_decode(tree, health_fields, ARRAY_LEN(health_fields), ret);
	ret->json = client_answer_to_json(tree);
	return 0;
}

void bunker_health_finish(struct bunker_health *health)
{
	cJSON_Delete(client_answer_from_json(health->json));
	*health = (struct bunker_health){0};
}
