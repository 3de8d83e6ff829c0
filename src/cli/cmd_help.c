#include "cli/commands.h"

static int run_help(struct arguments *args)
{
	static char help[] = "--help";
	if (args->operand_count == 0) {
		cli_help_print_overview();
		return 0;
	}
	const struct command *command = cli_command_find(args->operands[0]);
	if (!command) {
		cli_report("there is no command \"%s\"; see: bunker help", args->operands[0]);
		return STATUS_USAGE;
	}
	char *argv[] = {args->operands[0], help, NULL};
	return cli_command_run(command, 2, argv);
}

static const struct option *const help_options[] = {cli_common_options, NULL};

const struct command cmd_help = {
	.name = "help",
	.summary = "explain a command",
	.usage = "[COMMAND]",
	.description = "Shows the commands, or everything about one of them.",
	.examples = "  bunker help\n"
		    "  bunker help run",
	.options = help_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.max_operands = 1,
	.run = run_help,
};
