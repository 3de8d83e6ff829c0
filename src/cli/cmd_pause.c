#include "cli/commands.h"
#include "cli/changes.h"

static int pause_one(struct bunker *b, const char *id, const struct arguments *args,
	struct bunker_sandbox *ret, struct bunker_error *e)
{
	return bunker_pause(b, id, !args->disk_only, ret, e);
}

static int run_pause(struct arguments *args)
{
	return cli_change_sandboxes(args, args->operand_count, pause_one);
}

static const struct option own_options[] = {
	{'d', "disk-only", NULL, OPTION_FLAG, offsetof(struct arguments, disk_only),
		"end the processes and keep only the disk"},
	{0},
};

static const struct option *const pause_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_pause = {
	.name = "pause",
	.summary = "stop sandboxes where they are",
	.usage = "[options] SANDBOX...",
	.description =
		"Stops every process of the sandboxes, given by id or name, where it is; `bunker resume`\n"
		"lets them go on there. The time of commands stands still meanwhile. With --disk-only the\n"
		"processes end, and a resume boots the sandbox anew on its disk.",
	.examples = "  bunker pause work\n"
		    "  bunker pause --disk-only $(bunker ls -q --status idle)",
	.options = pause_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = OPERANDS_MANY,
	.run = run_pause,
};
