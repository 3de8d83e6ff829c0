#include "cli/commands.h"
#include "cli/changes.h"

static int extend_one(struct bunker *b, const char *id, const struct arguments *args,
	struct bunker_sandbox *ret, struct bunker_error *e)
{
	return bunker_set_lease(b, id, args->operands[1], ret, e);
}

static int run_extend(struct arguments *args)
{
	return cli_change_sandboxes(args, 1, extend_one);
}

static const struct option *const extend_options[] = {
	cli_connection_options, cli_common_options, NULL};

const struct command cmd_extend = {
	.name = "extend",
	.summary = "give a sandbox more time, or less",
	.usage = "[options] SANDBOX TIME",
	.description =
		"Sets the lease of a sandbox, given by id or name, to end TIME from now. What happens\n"
		"then was said with --on-lease when it was made. 0s: it has no end.",
	.examples = "  bunker extend work 1h\n"
		    "  bunker extend work 0s",
	.options = extend_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 2,
	.max_operands = 2,
	.run = run_extend,
};
