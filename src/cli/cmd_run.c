#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/execution.h"
#include "cli/session.h"
#include "cli/suggest.h"
#include "cli/terminal.h"

#define STATUS_NOT_FOUND 127

/* Docker's order is template, then command; ours has an option for the template. */
static void explain_template(const struct arguments *args, struct bunker *b)
{
	struct bunker_template_list list;
	const char *word = args->exec.argv ? args->exec.argv[0] : NULL;
	if (!word || bunker_templates(b, &list, NULL) < 0)
		return;
	for (size_t i = 0; i < list.count; i++)
		if (strcmp(list.items[i].name, word) == 0)
			cli_report(
				"%s is a template; what runs in it comes behind: bunker run %s-t %s "
				"-- COMMAND",
				word, args->terminal ? "-it " : "", word);
	bunker_template_list_finish(&list);
}

/* "run -t -i x" has "-i" for a template. */
static int check_template(const struct arguments *args)
{
	for (size_t i = 0; i < args->settings.count; i++)
		if (strcmp(args->settings.items[i].name, "template") == 0 &&
			args->settings.items[i].value[0] == '-') {
			cli_report("-t is the template of run, and %s is none; for a terminal: "
				   "bunker run -it -- COMMAND",
				args->settings.items[i].value);
			return STATUS_USAGE;
		}
	return 0;
}

static int run_at_terminal(struct arguments *args, struct bunker *b)
{
	struct bunker_exec_options command = {.argv = args->exec.argv, .shell = args->exec.shell};
	return cli_terminal_run(args, b, NULL, &command);
}

static int run_run_once(struct arguments *args, struct bunker *b, const struct execution *x)
{
	struct bunker_result result;
	struct bunker_error e;
	int r = bunker_run(b, &args->create, &args->exec, &result, &e);
	if (r < 0)
		cli_suggest_template(b, args, &e);
	return cli_execution_finish(args, x, r, &result, &e);
}

/* Returns 0 or the exit status. */
static int prepare_run(struct arguments *args, struct execution *x)
{
	if (!args->terminal)
		return cli_execution_prepare(args, 0, x);
	if (args->json) {
		cli_report("--json does not go with a terminal");
		return STATUS_USAGE;
	}
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		cli_report("-it needs a terminal; without one, use: bunker run -i");
		return STATUS_USAGE;
	}
	return cli_execution_take_command(args, 0);
}

static int run_run(struct arguments *args)
{
	struct bunker *b;
	struct execution x = {0};
	int status = check_template(args);
	if (!status)
		status = prepare_run(args, &x);
	if (status)
		return status;
	if (cli_session_open(args, SESSION_STARTS_SERVER, &b) < 0)
		return STATUS_NOT_EXECUTED;
	status = args->terminal ? run_at_terminal(args, b) : run_run_once(args, b, &x);
	if (status == STATUS_NOT_FOUND)
		explain_template(args, b);
	bunker_close(b);
	return status;
}

static const struct option own_options[] = {
	{0, "tty", NULL, OPTION_FLAG, offsetof(struct arguments, terminal),
		"run it at your terminal; -t alone is the template", .together = "it"},
	{0},
};

static const struct option *const run_options[] = {cli_command_options, own_options,
	cli_sandbox_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_run = {
	.name = "run",
	.summary = "run one command in a new sandbox, which is gone afterwards",
	.usage = "[options] [--] COMMAND [ARG...]",
	.description =
		"Makes a sandbox, runs COMMAND in it, passes its output on as it is written and\n"
		"destroys the sandbox. Ctrl-C destroys it too. If there is no server on this machine\n"
		"yet, root gets one in the background.\n"
		"\n"
		"With -it (or -ti) COMMAND runs at your terminal, where ~. at the beginning of a line\n"
		"detaches and keeps the sandbox. -t alone is the template: docker's run -it base sh is\n"
		"bunker run -it -t base sh.\n"
		"\n"
		"The exit status is the command's: 124 when it ran out of time, 128+N when signal N\n"
		"killed it, 125 when it could not be run at all. With --json the output is text, in\n"
		"which bytes that are not UTF-8 are replaced.",
	.examples = "  bunker run -- uname -a\n"
		    "  bunker run -it -- bash\n"
		    "  bunker run --shell 'echo $HOME; id'\n"
		    "  bunker run --memory 256Mi --timeout 10s -- python3 -c 'print(6 * 7)'\n"
		    "  bunker run -f ./job.sh:/home/user/job.sh -e TOKEN -- sh job.sh\n"
		    "  tar c src | bunker run -i -- tar tv",
	.options = run_options,
	.operands_before_command = 0,
	.max_operands = OPERANDS_MANY,
	.run = run_run,
};
