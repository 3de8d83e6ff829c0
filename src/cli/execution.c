/*
 * The bytes of the command go to our stdout and stderr as they arrive, unbuffered and exact.
 *
 * Of a run, Ctrl-C needs no handler: the signal ends us, the shell sees 130 (and that it was a
 * signal, which a plain exit would hide from its loops), the connection closes with us and the
 * server takes that as the end of the run. SIGPIPE likewise; where the parent ignores it, EPIPE
 * ends the call without a word. An exec's command outlives us: waiting.c.
 */
#include "cli/execution.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/report.h"
#include "cli/session.h"

#define INPUT_MAX ((size_t)8 << 20)

int cli_execution_pass_output(void *arg, enum bunker_stream stream, const void *data, size_t size)
{
	struct execution *x = arg;
	int fd = stream == BUNKER_STDOUT ? STDOUT_FILENO : STDERR_FILENO;
	x->write_error = -fd_write_all(fd, data, size);
	return x->write_error;
}

static int cli_execution_read_input(struct arguments *args)
{
	if (isatty(STDIN_FILENO))
		return cli_report("--stdin sends a pipe or a file, and stdin is a terminal");
	int r = fd_read_all(STDIN_FILENO, &args->input, INPUT_MAX);
	if (r == -EFBIG)
		return cli_report(
			"stdin is longer than %zu MiB; send it as a file: --file LOCAL:PATH",
			INPUT_MAX >> 20);
	if (r < 0)
		return cli_report("cannot read stdin: %s", strerror(-r));
	args->exec.input = args->input.data;
	args->exec.input_size = args->input.len;
	return 0;
}

int cli_execution_take_command(struct arguments *args, int first)
{
	bool has_operands = args->operand_count > first;
	if (has_operands == (args->exec.shell != NULL)) {
		cli_report(has_operands
				   ? "give either a COMMAND or --shell, not both"
				   : "there is no command to run; give a COMMAND or --shell LINE");
		return STATUS_USAGE;
	}
	if (has_operands)
		args->exec.argv = (const char *const *)args->operands + first;
	return 0;
}

int cli_execution_prepare(struct arguments *args, int first, struct execution *x)
{
	int status = cli_execution_take_command(args, first);
	if (status)
		return status;
	if (cli_arguments_load_files(args) < 0 ||
		(args->with_input && cli_execution_read_input(args) < 0))
		return STATUS_NOT_EXECUTED;
	if (!args->json) {
		args->exec.output = cli_execution_pass_output;
		args->exec.output_arg = x;
	}
	return 0;
}

static int cli_execution_fail(
	const struct arguments *args, const struct execution *x, const struct bunker_error *e)
{
	if (x->write_error == EPIPE)
		return STATUS_SIGNALED(SIGPIPE);
	if (x->write_error)
		cli_report("cannot write the output: %s", strerror(x->write_error));
	else
		cli_session_report(args, e);
	if (!x->write_error)
		cli_waiting_report_lost(&x->waiting, e);
	return STATUS_NOT_EXECUTED;
}

static void cli_execution_explain(const struct bunker_result *result)
{
	if (result->timed_out)
		cli_report("the command was killed: it ran into its time limit (see --timeout)");
	else if (result->oom_killed)
		cli_report("the command was killed: out of memory (see --memory)");
}

static int exit_status(const struct bunker_result *result)
{
	if (result->timed_out)
		return STATUS_TIMEOUT;
	if (result->signal > 0)
		return STATUS_SIGNALED(result->signal);
	if (result->exit_code >= 0)
		return result->exit_code;
	cli_report("the command did not end by itself: it is %s", result->status);
	return STATUS_NOT_EXECUTED;
}

int cli_execution_status(const struct bunker_result *result)
{
	cli_execution_explain(result);
	return exit_status(result);
}

int cli_execution_finish(const struct arguments *args, const struct execution *x, int r,
	struct bunker_result *result, const struct bunker_error *e)
{
	if (r < 0)
		return cli_execution_fail(args, x, e);
	autofree char *json = args->json ? bunker_result_json(result) : NULL;
	if (json)
		puts(json);
	else
		cli_execution_explain(result);
	int status = exit_status(result);
	bunker_result_finish(result);
	return status;
}
