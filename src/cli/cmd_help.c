#include "cli/commands.h"

static int run_help(struct arguments *args)
{
	static char help[] = "--help";
	if (args->operand_count == 0) {
		cli_help_print_overview();
		return 0;
	}
	const struct command *command = cli_command_find(args->operands[0]);
	if (!command)
		return cli_command_refuse(args->operands[0]);
	char *argv[] = {args->operands[0], help, NULL, NULL};
	if (args->operand_count == 2) {
		argv[1] = args->operands[1];
		argv[2] = help;
	}
	if (args->operand_count == 2 && !command->parts) {
		cli_report("\"%s\" has no commands of its own", command->name);
		return STATUS_USAGE;
	}
	return cli_command_run(command, args->operand_count + 1, argv);
}

static const struct option *const help_options[] = {cli_common_options, NULL};

const struct command cmd_help = {
	.name = "help",
	.summary = "explain a command",
	.usage = "[COMMAND [COMMAND]]",
	.description = "Shows the commands, or everything about one of them.",
	.examples = "  bunker help\n"
		    "  bunker help run\n"
		    "  bunker help template build",
	.options = help_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.max_operands = 2,
	.run = run_help,
};
