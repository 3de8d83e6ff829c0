#include "cli/terminal.h"

#include <stdio.h>

#include "cli/console.h"
#include "cli/report.h"
#include "cli/session.h"
#include "cli/suggest.h"
#include "cli/target.h"

struct terminal {
	const struct bunker_exec_options *command;
	struct bunker_sandbox made; /* id NULL: none was */
	struct bunker_process process;
};

static int terminal_start(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	struct terminal *t = arg;
	struct bunker_process_options options = {.command = *t->command, .terminal = true};
	cli_console_size(&options.rows, &options.columns);
	return bunker_process_start(b, id, &options, &t->process, e);
}

static int terminal_start_in_new(
	struct arguments *args, struct bunker *b, struct terminal *t, struct bunker_error *e)
{
	if (bunker_create(b, &args->create, &t->made, e) < 0) {
		cli_suggest_template(b, args, e);
		return -1;
	}
	fprintf(stderr, "bunker: sandbox %s\n", *t->made.name ? t->made.name : t->made.id);
	int r = terminal_start(b, t->made.id, t, e);
	if (r < 0)
		bunker_destroy(b, t->made.id, NULL);
	return r;
}

static int terminal_end(
	const struct arguments *args, struct bunker *b, const struct terminal *t, int status)
{
	struct bunker_error e;
	if (status == CONSOLE_DETACHED) {
		fprintf(stderr, "\nbunker: detached; come back with: bunker attach %s %lld\n",
			t->process.sandbox_id, (long long)t->process.pid);
		return 0;
	}
	if (t->made.id && !args->keep && bunker_destroy(b, t->made.id, &e) < 0)
		cli_session_report(args, &e);
	return status;
}

int cli_terminal_run(struct arguments *args, struct bunker *b, const char *target,
	const struct bunker_exec_options *command)
{
	struct terminal t = {.command = command};
	struct bunker_error e;
	int status = STATUS_NOT_EXECUTED;
	if (!target && cli_arguments_load_files(args) < 0)
		return status;
	int r = target ? cli_target_apply(b, target, terminal_start, &t, &e)
		       : terminal_start_in_new(args, b, &t, &e);
	if (r < 0) {
		cli_session_report(args, &e);
	} else {
		status = cli_console_run(args, b,
			&(struct console){.sandbox = t.process.sandbox_id,
				.process = t.process.id,
				.terminal = true,
				.with_input = true});
		status = terminal_end(args, b, &t, status);
	}
	bunker_process_finish(&t.process);
	if (t.made.id)
		bunker_sandbox_finish(&t.made);
	return status;
}
