/* The help texts, made from the commands' entries and their option tables. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"

/* Where the explanation of an option starts. */
#define HELP_COLUMN 29

void cli_help_print_overview(void)
{
	puts("usage: bunker COMMAND [options] [arguments]\n\n"
	     "Isolated Linux workspaces for AI agents, on your own machine.\n\ncommands:");
	for (const struct command *const *c = cli_commands; *c; c++)
		printf("  %-12s%s\n", (*c)->name, (*c)->summary);
	puts("\nMore about one of them: bunker help COMMAND\n"
	     "A first sandbox: sudo bunker run -- uname -a");
}

static void print_option(const struct option *o)
{
	char letter[] = "-x,", left[64];
	letter[1] = o->letter;
	if (o->together)
		snprintf(letter, sizeof letter, "-%s", o->together);
	snprintf(left, sizeof left, "%-3s --%s %s", o->letter || o->together ? letter : "", o->name,
		o->value ? o->value : "");
	printf("  %-*s  %s\n", HELP_COLUMN - 4, left, o->help);
}

void cli_help_print_command(const struct command *command)
{
	printf("usage: bunker %s %s\n\n%s\n\noptions:\n", command->name, command->usage,
		command->description);
	struct option o;
	for (size_t at = 0; cli_options_next(command->options, &at, &o);)
		print_option(&o);
	printf("\nexamples:\n%s\n", command->examples);
}

void cli_help_print_parts(const struct command *command)
{
	printf("usage: bunker %s COMMAND %s\n\n%s\n\ncommands:\n", command->name, command->usage,
		command->description);
	for (const struct command *const *c = command->parts; *c; c++)
		printf("  %-10s%s\n", cli_command_word(*c), (*c)->summary);
	printf("\nMore about one of them: bunker %s COMMAND --help\n", command->name);
}
