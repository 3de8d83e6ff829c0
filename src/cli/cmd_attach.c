#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/session.h"
#include "cli/target.h"

/* A few screens of a terminal; of a process without one, only what comes from now on. */
#define SCROLLBACK 65536

struct search {
	const char *process;
	struct bunker_process found;
};

static int find_process(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	struct search *search = arg;
	return bunker_process_get(b, id, search->process, NULL, &search->found, e);
}

static int run_attach(struct arguments *args)
{
	struct bunker *b;
	struct bunker_error e;
	struct search search = {.process = args->operands[1]};
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &b) < 0)
		return STATUS_NOT_EXECUTED;
	int status = STATUS_NOT_EXECUTED;
	if (cli_target_apply(b, args->operands[0], find_process, &search, &e) < 0) {
		cli_session_report(args, &e);
	} else {
		const struct bunker_process *p = &search.found;
		bool typing = p->terminal && isatty(STDIN_FILENO);
		status = cli_console_run(args, b,
			&(struct console){.sandbox = p->sandbox_id,
				.process = p->id,
				.terminal = p->terminal,
				.with_input = typing || args->with_input,
				.offset = args->tail    ? -args->tail
					  : p->terminal ? -SCROLLBACK
							: 0});
		if (status == CONSOLE_DETACHED) {
			fputs("\nbunker: detached\n", stderr);
			status = 0;
		}
	}
	bunker_process_finish(&search.found);
	bunker_close(b);
	return status;
}

static const struct option own_options[] = {
	{'i', "stdin", NULL, OPTION_FLAG, offsetof(struct arguments, with_input),
		"give the process what is piped into bunker"},
	{0, "tail", "BYTES", OPTION_NUMBER, offsetof(struct arguments, tail),
		"begin with so many of the last bytes"},
	{0},
};

static const struct option *const attach_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_attach = {
	.name = "attach",
	.summary = "come back to a process",
	.usage = "[options] SANDBOX PROCESS",
	.description =
		"Attaches to a process of a sandbox, by its id, pid or name: its output from the\n"
		"beginning (of a terminal the last 64 KiB), then live until it ends. Several may be\n"
		"attached at once.\n"
		"\n"
		"On a terminal, ~. at the beginning of a line detaches; otherwise Ctrl-C does. The\n"
		"process goes on in both cases. The exit status is the process's.",
	.examples = "  bunker attach work 42\n"
		    "  echo hello | bunker attach -i work reader",
	.options = attach_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 2,
	.max_operands = 2,
	.run = run_attach,
};
