#include "cli/target.h"

#include <stdio.h>

#include "client/failure.h"

int cli_target_apply(
	struct bunker *b, const char *target, target_fn *fn, void *arg, struct bunker_error *e)
{
	if (id_is_valid(target)) {
		int r = fn(b, target, arg, e);
		if (r == 0 || e->http_status != 404)
			return r;
	}
	struct bunker_sandbox_list found;
	const struct bunker_list_options by_name = {.name = target, .limit = 1};
	int r = bunker_list(b, &by_name, &found, e);
	if (r < 0)
		return r;
	r = found.count > 0 ? fn(b, found.items[0].id, arg, e)
			    : client_fail(e, "not_found",
				      "there is no sandbox with the id or name \"%s\"", target);
	bunker_sandbox_list_finish(&found);
	return r;
}

static int take_id(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	struct bunker_sandbox sandbox;
	if (bunker_get(b, id, &sandbox, e) < 0)
		return -1;
	bunker_sandbox_finish(&sandbox);
	snprintf(arg, ID_SIZE, "%s", id);
	return 0;
}

int cli_target_find(struct bunker *b, const char *target, char id[ID_SIZE], struct bunker_error *e)
{
	return cli_target_apply(b, target, take_id, id, e);
}
