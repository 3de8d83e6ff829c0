#include "cli/commands.h"
#include "cli/session.h"
#include "cli/target.h"

struct killing {
	const struct arguments *args;
	const char *process;
};

static int kill_in(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	const struct killing *k = arg;
	if (!k->args->signal)
		return bunker_process_kill(b, id, k->process, e);
	return bunker_process_signal(b, id, k->process, k->args->signal, k->args->tree, e);
}

static int run_kill(struct arguments *args)
{
	struct bunker *b;
	struct bunker_error e;
	int status = 0;
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &b) < 0)
		return STATUS_FAILED;
	for (int i = 1; i < args->operand_count; i++) {
		struct killing k = {args, args->operands[i]};
		if (cli_target_apply(b, args->operands[0], kill_in, &k, &e) < 0) {
			cli_session_report(args, &e);
			status = STATUS_FAILED;
		}
	}
	bunker_close(b);
	return status;
}

static const struct option own_options[] = {
	{'s', "signal", "NAME", OPTION_STRING, offsetof(struct arguments, signal),
		"send this one, such as INT, and do not wait"},
	{0, "tree", NULL, OPTION_FLAG, offsetof(struct arguments, tree),
		"with --signal: to everything it started, too"},
	{0},
};

static const struct option *const kill_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_kill = {
	.name = "kill",
	.summary = "kill or signal processes",
	.usage = "[options] SANDBOX PROCESS...",
	.description =
		"Kills processes, by id, pid or name, with everything they started, and returns when they\n"
		"have ended. With --signal that signal goes to their main processes instead.",
	.examples = "  bunker kill work web\n"
		    "  bunker kill -s HUP work 42",
	.options = kill_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 2,
	.max_operands = OPERANDS_MANY,
	.run = run_kill,
};
