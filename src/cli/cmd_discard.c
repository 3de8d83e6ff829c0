#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/ask.h"
#include "cli/disks.h"
#include "client/failure.h"

/* 1: go on; 0: there is nothing to do, or it is not wanted. */
static int discard_ask(struct job *j, const char *to, struct bunker_error *e)
{
	struct diff_counts counts;
	char text[DIFF_COUNTS_TEXT];
	if (!isatty(STDIN_FILENO)) {
		cli_report("this throws files away and ends processes; say so by --yes");
		return JOB_MISUSED;
	}
	if (cli_diff_count(j, to, &counts, e) < 0)
		return -1;
	cli_diff_format_counts(&counts, text);
	return cli_ask("%s since %s. Throw that away and end the processes of %s?", text,
		to ? to : "the beginning", j->args->operands[0]);
}

static int work_discard(struct job *j, struct bunker_error *e)
{
	struct bunker_sandbox s;
	const char *to = j->args->disk.to;
	if (to && strcmp(to, "template") == 0)
		to = NULL;
	int r = j->args->disk.yes ? 1 : discard_ask(j, to, e);
	if (r == 0) {
		cli_report("nothing was thrown away");
		return JOB_SAID;
	}
	if (r < 0)
		return r;
	r = to ? bunker_checkpoint_restore(j->bunker, j->sandbox, to, &s, e)
	       : bunker_discard(j->bunker, j->sandbox, &s, e);
	if (r < 0)
		return r;
	if (!cli_job_print_json(j, s.json))
		printf("%s %s\n", s.id, s.status);
	bunker_sandbox_finish(&s);
	return 0;
}

static const struct option own_options[] = {
	{0, "to", "WHAT", OPTION_STRING, offsetof(struct arguments, disk.to),
		"template (what it began with), or a checkpoint"},
	{'y', "yes", NULL, OPTION_FLAG, offsetof(struct arguments, disk.yes), "do not ask"},
	{0},
};

static const struct option *const discard_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_discard = {
	.name = "discard",
	.summary = "throw away what a sandbox has changed",
	.usage = "[options] SANDBOX",
	.description =
		"The sandbox's disk becomes what it was at the beginning, or with --to at a checkpoint. Its\n"
		"processes end and it is booted anew; one that was paused is suspended afterwards. At a\n"
		"terminal it says what would be lost and asks; elsewhere it wants --yes. Checkpoints and\n"
		"volumes stay as they are.",
	.examples = "  bunker discard work\n"
		    "  bunker discard --yes --to before-upgrade work",
	.options = discard_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.in_sandbox = true,
	.work = work_discard,
};
