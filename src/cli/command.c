/* From argv to a command's run: the same steps for every command that does not parse its own. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/job.h"

const struct command *cli_command_find(const char *name)
{
	for (const struct command *const *c = cli_commands; *c; c++)
		if (strcmp((*c)->name, name) == 0)
			return *c;
	return NULL;
}

static int refuse_usage(const struct command *command, const char *message)
{
	cli_report("%s; see: bunker %s --help", message, command->name);
	return STATUS_USAGE;
}

static int run_parsed(const struct command *command, struct arguments *args)
{
	if (args->help) {
		cli_help_print_command(command);
		return 0;
	}
	if (args->operand_count < command->min_operands)
		return refuse_usage(command, "an argument is missing");
	if (args->operand_count > command->max_operands)
		return refuse_usage(command, "too many arguments");
	if (cli_arguments_resolve(args) < 0)
		return STATUS_USAGE;
	return command->work ? cli_job_run(command, args) : command->run(args);
}

const char *cli_command_word(const struct command *part)
{
	return strchr(part->name, ' ') + 1;
}

static int run_part(const struct command *command, int argc, char **argv)
{
	const char *word = argc < 2 ? "" : argv[1];
	for (const struct command *const *c = command->parts; *c; c++)
		if (strcmp(cli_command_word(*c), word) == 0)
			return cli_command_run(*c, argc - 1, argv + 1);
	if (argc < 2 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
		strcmp(word, "help") == 0) {
		cli_help_print_parts(command);
		return argc < 2 ? STATUS_USAGE : 0;
	}
	cli_report("there is no command \"%s %s\"; see: bunker %s --help", command->name, word,
		command->name);
	return STATUS_USAGE;
}

int cli_command_run(const struct command *command, int argc, char **argv)
{
	if (command->parts)
		return run_part(command, argc, argv);
	if (command->forward)
		return command->forward(argc, argv);
	const struct options_input input = {
		.tables = command->options,
		.operands_before_command = command->operands_before_command,
		.argc = argc - 1,
		.argv = argv + 1,
	};
	struct arguments args = {0};
	char message[256];
	int status = STATUS_USAGE;
	args.operands = input.argv;
	args.operand_count = cli_options_parse(&input, &args, message, sizeof message);
	if (args.operand_count < 0) {
		refuse_usage(command, message);
	} else {
		args.operands[args.operand_count] = NULL;
		status = run_parsed(command, &args);
	}
	cli_arguments_finish(&args);
	return status;
}
