#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/session.h"
#include "cli/target.h"

/* The login shell of the sandbox's user, whichever it is there. */
static const char *const login_shell[] = {"/bin/sh", "-c", "exec \"${SHELL:-/bin/sh}\" -l", NULL};

static int start_shell(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	struct bunker_process *process = arg;
	const char *term = getenv("TERM");
	const struct bunker_pair env = {"TERM", term};
	struct bunker_process_options options = {
		.command = {.argv = login_shell, .env = &env, .env_count = term && *term ? 1 : 0},
		.terminal = true,
	};
	cli_console_size(&options.rows, &options.columns);
	return bunker_process_start(b, id, &options, process, e);
}

static int start_in_new(const struct arguments *args, struct bunker *b, struct bunker_sandbox *box,
	struct bunker_process *process, struct bunker_error *e)
{
	if (bunker_create(b, &args->create, box, e) < 0)
		return -1;
	fprintf(stderr, "bunker: sandbox %s\n", *box->name ? box->name : box->id);
	int r = start_shell(b, box->id, process, e);
	if (r < 0)
		bunker_destroy(b, box->id, NULL);
	return r;
}

/* A sandbox that was made for this shell is destroyed with it, unless the user may come back. */
static int end_shell(const struct arguments *args, struct bunker *b,
	const struct bunker_sandbox *made, const struct bunker_process *process, int status)
{
	struct bunker_error e;
	if (status == CONSOLE_DETACHED) {
		fprintf(stderr, "\nbunker: detached; come back with: bunker attach %s %lld\n",
			process->sandbox_id, (long long)process->pid);
		return 0;
	}
	if (made->id && !args->keep && bunker_destroy(b, made->id, &e) < 0)
		cli_session_report(args, &e);
	return status;
}

static int run_shell(struct arguments *args)
{
	struct bunker *b;
	struct bunker_error e;
	struct bunker_sandbox made = {0};
	struct bunker_process process = {0};
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		cli_report("a shell needs a terminal; without one, use: bunker exec -i");
		return STATUS_USAGE;
	}
	if (cli_session_open(args, SESSION_STARTS_SERVER, &b) < 0)
		return STATUS_NOT_EXECUTED;
	int r = args->operand_count
			? cli_target_apply(b, args->operands[0], start_shell, &process, &e)
			: start_in_new(args, b, &made, &process, &e);
	int status = STATUS_NOT_EXECUTED;
	if (r < 0) {
		cli_session_report(args, &e);
	} else {
		status = cli_console_run(args, b,
			&(struct console){.sandbox = process.sandbox_id,
				.process = process.id,
				.terminal = true,
				.with_input = true});
		status = end_shell(args, b, &made, &process, status);
	}
	bunker_process_finish(&process);
	if (made.id)
		bunker_sandbox_finish(&made);
	bunker_close(b);
	return status;
}

static const struct option own_options[] = {
	{'k', "keep", NULL, OPTION_FLAG, offsetof(struct arguments, keep),
		"do not destroy a sandbox that was made for this shell"},
	{0},
};

static const struct option *const shell_options[] = {
	own_options, cli_sandbox_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_shell = {
	.name = "shell",
	.summary = "a terminal in a sandbox",
	.usage = "[options] [SANDBOX]",
	.description =
		"Opens the login shell of the sandbox's user on your terminal. Without SANDBOX one is\n"
		"made by the options, and destroyed when the shell ends.\n"
		"\n"
		"At the beginning of a line, ~. detaches: the shell goes on, and bunker attach comes\n"
		"back to it. ~~ is a ~. The shell also survives a lost connection and a restart of the\n"
		"server. The exit status is the shell's.",
	.examples = "  bunker shell\n"
		    "  bunker shell work\n"
		    "  bunker shell --memory 2Gi -u root",
	.options = shell_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.max_operands = 1,
	.run = run_shell,
};
