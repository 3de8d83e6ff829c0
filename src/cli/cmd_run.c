#include "cli/commands.h"
#include "cli/execution.h"
#include "cli/session.h"

static int run_run(struct arguments *args)
{
	struct bunker *b;
	struct bunker_result result;
	struct bunker_error e;
	struct execution x = {0};
	int status = cli_execution_prepare(args, 0, &x);
	if (status)
		return status;
	if (cli_session_open(args, SESSION_STARTS_SERVER, &b) < 0)
		return STATUS_NOT_EXECUTED;
	int r = bunker_run(b, &args->create, &args->exec, &result, &e);
	bunker_close(b);
	return cli_execution_finish(args, &x, r, &result, &e);
}

static const struct option *const run_options[] = {
	cli_command_options, cli_sandbox_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_run = {
	.name = "run",
	.summary = "run one command in a new sandbox, which is gone afterwards",
	.usage = "[options] [--] COMMAND [ARG...]",
	.description =
		"Makes a sandbox, runs COMMAND in it, passes its output on as it is written and\n"
		"destroys the sandbox. Ctrl-C destroys it too. If there is no server on this machine\n"
		"yet, root gets one in the background.\n"
		"\n"
		"The exit status is the command's: 124 when it ran out of time, 128+N when signal N\n"
		"killed it, 125 when it could not be run at all. With --json the output is text, in\n"
		"which bytes that are not UTF-8 are replaced.",
	.examples = "  bunker run -- uname -a\n"
		    "  bunker run --shell 'echo $HOME; id'\n"
		    "  bunker run --memory 256Mi --timeout 10s -- python3 -c 'print(6 * 7)'\n"
		    "  bunker run -f ./job.sh:/home/user/job.sh -e TOKEN -- sh job.sh\n"
		    "  tar c src | bunker run -i -- tar tv",
	.options = run_options,
	.operands_before_command = 0,
	.max_operands = OPERANDS_MANY,
	.run = run_run,
};
