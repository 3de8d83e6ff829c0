#include <errno.h>
#include <signal.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/execution.h"
#include "cli/session.h"
#include "cli/target.h"

struct reading {
	const char *process;
	struct bunker_output_options options;
};

static int read_in(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	const struct reading *r = arg;
	return bunker_process_output(b, id, r->process, &r->options, e);
}

static int run_logs(struct arguments *args)
{
	struct bunker *b;
	struct bunker_error e;
	struct execution x = {0};
	struct reading reading = {
		.process = args->operands[args->operand_count - 1],
		.options = {.offset = args->tail ? -args->tail : args->offset,
			.follow = args->follow,
			.output = cli_execution_pass_output,
			.output_arg = &x},
	};
	if (args->tail && args->offset) {
		cli_report("give either --offset or --tail");
		return STATUS_USAGE;
	}
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &b) < 0)
		return STATUS_FAILED;
	int r = args->operand_count == 2
			? cli_target_apply(b, args->operands[0], read_in, &reading, &e)
			: read_in(b, NULL, &reading, &e);
	bunker_close(b);
	if (r == 0)
		return 0;
	if (x.write_error == EPIPE)
		return STATUS_SIGNALED(SIGPIPE);
	if (x.write_error)
		cli_report("cannot write the output: %s", strerror(x.write_error));
	else
		cli_session_report(args, &e);
	return STATUS_FAILED;
}

static const struct option own_options[] = {
	{'f', "follow", NULL, OPTION_FLAG, offsetof(struct arguments, follow),
		"go on until the process ends"},
	{0, "offset", "BYTE", OPTION_NUMBER, offsetof(struct arguments, offset),
		"begin with this byte of each stream"},
	{0, "tail", "BYTES", OPTION_NUMBER, offsetof(struct arguments, tail),
		"begin with so many of the last bytes of each stream"},
	{0},
};

static const struct option *const logs_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_logs = {
	.name = "logs",
	.summary = "the output of a process, now or later",
	.usage = "[options] SANDBOX PROCESS | ID",
	.description =
		"Prints what a process or job has written, by its id, pid or name: its stdout to ours,\n"
		"its stderr to ours. Works while it runs and as long as the server keeps results; by ID\n"
		"alone also when the sandbox is gone.",
	.examples = "  bunker logs work web\n"
		    "  bunker logs -f --tail 1000 work web\n"
		    "  bunker logs $(bunker exec -d work -- make)",
	.options = logs_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 2,
	.run = run_logs,
};
