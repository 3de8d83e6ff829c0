#include <stdio.h>
#include <unistd.h>

#include "cli/disks.h"

static int work_commit(struct job *j, struct bunker_error *e)
{
	struct bunker_snapshot s;
	struct bunker_snapshot_options options = {
		.description = j->args->create.description, .name = j->rest[0]};
	struct diff_counts counts;
	char text[DIFF_COUNTS_TEXT];
	bool for_people = isatty(STDERR_FILENO) && !j->args->json;
	options.tag = cli_snapshot_split_tag(j->rest[0]);
	if (for_people && cli_diff_count(j, NULL, &counts, e) < 0)
		return -1;
	if (bunker_snapshot_create(j->bunker, j->sandbox, &options, &s, e) < 0)
		return -1;
	if (for_people) {
		cli_diff_format_counts(&counts, text);
		fprintf(stderr, "%s:%s: %s; to begin with it: bunker create --snapshot %s:%s\n",
			s.name, s.tag, text, s.name, s.tag);
	}
	cli_snapshot_print_made(j, &s);
	return 0;
}

static const struct option own_options[] = {
	{0, "description", "TEXT", OPTION_STRING, offsetof(struct arguments, create.description),
		"a note for people"},
	{0},
};

static const struct option *const commit_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_commit = {
	.name = "commit",
	.summary = "keep what a sandbox has changed, to begin others with",
	.usage = "[options] SANDBOX NAME[:TAG]",
	.description =
		"Makes a snapshot of the sandbox's disk, with a name, and prints its id. The sandbox stands\n"
		"still for milliseconds and goes on. A tag that another snapshot of that name has moves to\n"
		"the new one; without one it is \"latest\". What has changed: bunker diff.",
	.examples = "  bunker commit work web\n"
		    "  bunker commit work web:v2 --description 'with node_modules'\n"
		    "  bunker create --snapshot web:v2",
	.options = commit_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 2,
	.max_operands = 2,
	.in_sandbox = true,
	.work = work_commit,
};
