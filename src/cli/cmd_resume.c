#include "cli/commands.h"
#include "cli/changes.h"

static int resume_one(struct bunker *b, const char *id, const struct arguments *args,
	struct bunker_sandbox *ret, struct bunker_error *e)
{
	return bunker_resume(b, id, !args->reboot, ret, e);
}

static int run_resume(struct arguments *args)
{
	return cli_change_sandboxes(args, args->operand_count, resume_one);
}

static const struct option own_options[] = {
	{0, "reboot", NULL, OPTION_FLAG, offsetof(struct arguments, reboot),
		"end the processes that a pause kept, and boot it anew"},
	{0},
};

static const struct option *const resume_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_resume = {
	.name = "resume",
	.summary = "let paused sandboxes go on",
	.usage = "[options] SANDBOX...",
	.description =
		"Lets paused sandboxes, given by id or name, go on where they were. Those of which only\n"
		"the disk was kept, and those that have failed, are booted anew on their disks.",
	.examples = "  bunker resume work\n"
		    "  bunker resume --reboot work",
	.options = resume_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = OPERANDS_MANY,
	.run = run_resume,
};
