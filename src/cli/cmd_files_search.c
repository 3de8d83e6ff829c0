/* Searching and watching files: find, grep, watch. */
#include <stdio.h>
#include <string.h>

#include "cli/files.h"

static const struct option *const plain_options[] = {
	cli_files_options, cli_connection_options, cli_common_options, NULL};

/* ---- find ---- */

static int print_path(void *arg, const struct bunker_entry *entry)
{
	(void)arg;
	cli_files_print_text(entry->path);
	putchar('\n');
	return 0;
}

static int work_find(struct job *j, struct bunker_error *e)
{
	const char *path = j->rest[1] ? j->rest[1] : ".";
	return bunker_file_find(
		j->bunker, j->sandbox, path, j->rest[0], &j->args->file.place, print_path, NULL, e);
}

const struct command cmd_files_find = {
	.name = "files find",
	.summary = "find files by pattern",
	.usage = "[options] SANDBOX PATTERN [PATH]",
	.description =
		"Prints the paths below PATH, the working directory by default, that match PATTERN: * and\n"
		"? and [a-z] and {a,b} within a name, ** for any directories. Without a slash it is about\n"
		"names at any depth; with one in front, about the top.",
	.examples =
		"  bunker files find work '*.py'\n  bunker files find work 'src/**/*.{c,h}' /srv",
	.options = plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 2,
	.max_operands = 3,
	.in_sandbox = true,
	.work = work_find,
};

/* ---- grep ---- */

static int print_match(void *arg, const struct bunker_match *match)
{
	(void)arg;
	cli_files_print_text(match->path);
	printf(":%lld:", (long long)match->line);
	cli_files_print_text(match->text);
	putchar('\n');
	return 0;
}

static int work_grep(struct job *j, struct bunker_error *e)
{
	bool truncated = false;
	struct bunker_grep_options *o = &j->args->file.grep;
	o->pattern = j->rest[0];
	o->place = j->args->file.place;
	int r = bunker_file_grep(j->bunker, j->sandbox, j->rest[1] ? j->rest[1] : ".", o,
		print_match, NULL, &truncated, e);
	if (truncated)
		cli_report("there are more lines than these");
	return r;
}

static const struct option grep_option[] = {
	{'E', "regex", NULL, OPTION_FLAG, offsetof(struct arguments, file.grep.regex),
		"PATTERN is an extended regular expression, not text"},
	{'i', "ignore-case", NULL, OPTION_FLAG, offsetof(struct arguments, file.grep.ignore_case),
		"capitals or not is all the same"},
	{0, "include", "GLOB", OPTION_STRING, offsetof(struct arguments, file.grep.include),
		"only files whose path matches"},
	{0},
};
static const struct option *const grep_options[] = {
	grep_option, cli_files_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_files_grep = {
	.name = "files grep",
	.summary = "find lines in files",
	.usage = "[options] SANDBOX PATTERN [PATH]",
	.description =
		"Prints path, number and text of the lines below PATH, the working directory by\n"
		"default, that have PATTERN in them. Files that are no text are passed over.",
	.examples = "  bunker files grep work TODO\n"
		    "  bunker files grep -E --include '*.py' work '^def test_' tests",
	.options = grep_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 2,
	.max_operands = 3,
	.in_sandbox = true,
	.work = work_grep,
};

/* ---- watch ---- */

static int files_search_print_event(void *arg, const struct bunker_file_event *event)
{
	const struct arguments *args = arg;
	if (args->json) {
		puts(event->json);
	} else if (strcmp(event->type, "ready") != 0) {
		printf("%-8s ", event->type);
		cli_files_print_text(event->path);
		if (event->to[0]) {
			fputs(" -> ", stdout);
			cli_files_print_text(event->to);
		}
		puts(event->directory ? "/" : "");
	}
	return fflush(stdout);
}

static int work_watch(struct job *j, struct bunker_error *e)
{
	return bunker_file_watch(j->bunker, j->sandbox, j->rest[0] ? j->rest[0] : ".",
		j->args->file.recursive, &j->args->file.place, files_search_print_event, j->args,
		e);
}

static const struct option watch_option[] = {
	{'r', "recursive", NULL, OPTION_FLAG, offsetof(struct arguments, file.recursive),
		"everything below, too"},
	{0},
};
static const struct option *const watch_options[] = {
	watch_option, cli_files_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_files_watch = {
	.name = "files watch",
	.summary = "tell what happens in a directory",
	.usage = "[options] SANDBOX [PATH]",
	.description =
		"Prints a line for each file that is made, written, removed, renamed or has its mode\n"
		"changed, until the directory is gone. \"overflow\" means that events were lost.",
	.examples = "  bunker files watch -r work src",
	.options = watch_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 2,
	.in_sandbox = true,
	.work = work_watch,
};
