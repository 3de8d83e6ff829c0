/* From argv to a command's run: the same steps for every command that does not parse its own. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/job.h"
#include "cli/suggest.h"

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

/* The words of a usage that stand for themselves, outside of brackets: number n of them. */
static void command_find_operand(const char *usage, int n, char *name, size_t size)
{
	int depth = 0;
	name[0] = '\0';
	for (const char *p = usage; *p; p++) {
		depth += (*p == '[') - (*p == ']');
		if (depth > 0 || *p < 'A' || *p > 'Z')
			continue;
		size_t len = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
		if (n-- == 0) {
			snprintf(name, size, "%.*s", (int)len, p);
			return;
		}
		p += len - 1;
	}
}

static int refuse_missing(const struct command *command, int operand)
{
	char name[32], message[64];
	command_find_operand(command->usage, operand, name, sizeof name);
	snprintf(message, sizeof message, "an argument is missing: %s", name);
	return refuse_usage(command, message);
}

static int run_parsed(const struct command *command, struct arguments *args)
{
	if (args->help) {
		cli_help_print_command(command);
		return 0;
	}
	if (args->operand_count < command->min_operands)
		return refuse_missing(command, args->operand_count);
	if (args->operand_count > command->max_operands)
		return refuse_usage(command, "too many arguments");
	if (cli_arguments_resolve(args) < 0)
		return STATUS_USAGE;
	return command->work ? cli_job_run(command, args) : command->run(args);
}

/* Words of other programs for what a command does. */
static const struct {
	const char *word, *command;
} synonyms[] = {
	{"build", "template build"},
	{"clone", "fork"},
	{"connect", "shell"},
	{"console", "shell"},
	{"delete", "rm"},
	{"df", "du"},
	{"destroy", "rm"},
	{"enter", "shell"},
	{"images", "templates"},
	{"inspect", "info"},
	{"list", "ls"},
	{"load", "template import"},
	{"login", "key"},
	{"pull", "template import"},
	{"remove", "rm"},
	{"show", "info"},
	{"ssh", "shell"},
	{"start", "resume"},
	{"stats", "usage"},
	{"status", "info"},
	{"stop", "pause"},
	{"terminate", "rm"},
	{"top", "ps"},
	{"unpause", "resume"},
	{"wait", "jobs"},
};

static const char *command_suggest(const char *word)
{
	struct suggestion s;
	for (size_t i = 0; i < ARRAY_LEN(synonyms); i++)
		if (strcmp(synonyms[i].word, word) == 0)
			return synonyms[i].command;
	cli_suggest_begin(&s, word, strlen(word));
	for (const struct command *const *c = cli_commands; *c; c++)
		cli_suggest_offer(&s, (*c)->name);
	return s.best;
}

int cli_command_refuse(const char *word)
{
	const char *meant = command_suggest(word);
	if (meant)
		cli_report(
			"there is no command \"%s\"; did you mean: bunker %s? All of them: bunker help",
			word, meant);
	else
		cli_report("there is no command \"%s\"; see: bunker help", word);
	return STATUS_USAGE;
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
	struct suggestion s;
	cli_suggest_begin(&s, word, strlen(word));
	for (const struct command *const *c = command->parts; *c; c++)
		cli_suggest_offer(&s, cli_command_word(*c));
	cli_report("there is no command \"%s %s\"%s%s%s; see: bunker %s --help", command->name,
		word, s.best ? "; did you mean \"" : "", s.best ? s.best : "", s.best ? "\"?" : "",
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
