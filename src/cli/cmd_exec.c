#include "cli/commands.h"
#include "cli/execution.h"
#include "cli/session.h"
#include "cli/target.h"

struct exec_call {
	const struct bunker_exec_options *options;
	struct bunker_result result;
};

static int exec_in(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	struct exec_call *call = arg;
	return bunker_exec(b, id, call->options, &call->result, e);
}

static int run_exec(struct arguments *args)
{
	struct bunker *b;
	struct bunker_error e;
	struct execution x = {0};
	struct exec_call call = {.options = &args->exec};
	int status = cli_execution_prepare(args, 1, &x);
	if (status)
		return status;
	args->exec.env = args->create.env;
	args->exec.env_count = args->create.env_count;
	args->exec.files = args->create.files;
	args->exec.file_count = args->create.file_count;
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &b) < 0)
		return STATUS_NOT_EXECUTED;
	int r = cli_target_apply(b, args->operands[0], exec_in, &call, &e);
	bunker_close(b);
	return cli_execution_finish(args, &x, r, &call.result, &e);
}

static const struct option own_options[] = {
	{'e', "env", "K=V", OPTION_LIST, offsetof(struct arguments, env),
		"environment variable; K alone takes yours; repeatable"},
	{'f', "file", "LOCAL:PATH", OPTION_LIST, offsetof(struct arguments, files),
		"put a local file at PATH first, mode kept; repeatable"},
	{'u', "user", "NAME", OPTION_STRING, offsetof(struct arguments, exec.user),
		"run as this user of the sandbox"},
	{'w', "workdir", "PATH", OPTION_STRING, offsetof(struct arguments, exec.cwd),
		"where the command starts"},
	{0, "timeout", "TIME", OPTION_STRING, offsetof(struct arguments, exec.timeout),
		"kill the command after so long, such as 30s or 5m"},
	{0},
};

static const struct option *const exec_options[] = {
	cli_command_options, own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_exec = {
	.name = "exec",
	.summary = "run a command in a sandbox",
	.usage = "[options] SANDBOX [--] COMMAND [ARG...]",
	.description =
		"Runs COMMAND in a sandbox, given by id or name, and passes its output on as it is\n"
		"written.\n"
		"\n"
		"The exit status is the command's: 124 when it ran out of time, 128+N when signal N\n"
		"killed it, 125 when it could not be run at all. With --json the output is text, in\n"
		"which bytes that are not UTF-8 are replaced.",
	.examples = "  bunker exec work -- ls -la\n"
		    "  bunker exec work --shell 'make && ./test'\n"
		    "  bunker exec -w /srv -u root --timeout 1m work -- apt-get update\n"
		    "  bunker exec -i work -- sh -s < script.sh",
	.options = exec_options,
	.operands_before_command = 1,
	.min_operands = 1,
	.max_operands = OPERANDS_MANY,
	.run = run_exec,
};
