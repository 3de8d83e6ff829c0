#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/console.h"
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

/* ---- at a terminal, or with its stdin as it comes ---- */

struct start_call {
	const struct arguments *args;
	struct bunker_process process;
};

static int exec_start_in(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	struct start_call *call = arg;
	const struct arguments *args = call->args;
	struct bunker_process_options options = {
		.command = args->exec,
		.name = args->process_name,
		.open_stdin = args->with_input && !args->terminal && !args->detach,
		.terminal = args->terminal,
	};
	cli_console_size(&options.rows, &options.columns);
	return bunker_process_start(b, id, &options, &call->process, e);
}

static int watch_process(
	const struct arguments *args, struct bunker *b, const struct bunker_process *p)
{
	struct waiting waiting = {.target = args->operands[0]};
	cli_waiting_prepare();
	cli_waiting_started(&waiting, p->sandbox_id, p->id, p->pid);
	int status = cli_console_run(args, b,
		&(struct console){.sandbox = p->sandbox_id,
			.process = p->id,
			.terminal = args->terminal,
			.with_input = args->with_input});
	if (status == STATUS_SIGNALED(SIGPIPE))
		cli_waiting_kill(b, &waiting);
	if (status == STATUS_SIGNALED(SIGTERM) || status == STATUS_SIGNALED(SIGHUP))
		cli_waiting_report(&waiting);
	if (status != CONSOLE_DETACHED)
		return status;
	fprintf(stderr, "\nbunker: detached; come back with: bunker attach %s %lld\n",
		p->sandbox_id, (long long)p->pid);
	return 0;
}

static int run_process(struct arguments *args)
{
	struct bunker *b;
	struct bunker_error e;
	struct start_call call = {.args = args};
	int status = STATUS_NOT_EXECUTED;
	if (args->terminal && args->with_input && !isatty(STDIN_FILENO)) {
		cli_report("-t with -i needs a terminal as stdin; leave out -t");
		return STATUS_USAGE;
	}
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &b) < 0)
		return STATUS_NOT_EXECUTED;
	if (cli_target_apply(b, args->operands[0], exec_start_in, &call, &e) < 0) {
		cli_session_report(args, &e);
	} else if (args->detach) {
		autofree char *json = args->json ? bunker_json_text(call.process.json) : NULL;
		puts(json ? json : call.process.id);
		status = 0;
	} else {
		status = watch_process(args, b, &call.process);
	}
	bunker_process_finish(&call.process);
	bunker_close(b);
	return status;
}

/* ---- one answer, or a stream of it ---- */

static int run_once(struct arguments *args)
{
	struct bunker *b;
	struct bunker_error e;
	struct execution x = {0};
	struct exec_call call = {.options = &args->exec};
	int status = cli_execution_prepare(args, 1, &x);
	if (status)
		return status;
	x.waiting.target = args->operands[0];
	args->exec.started = cli_waiting_started;
	args->exec.started_arg = &x.waiting;
	args->exec.files = args->create.files;
	args->exec.file_count = args->create.file_count;
	cli_waiting_prepare();
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &b) < 0)
		return STATUS_NOT_EXECUTED;
	int r = cli_target_apply(b, args->operands[0], exec_in, &call, &e);
	if (r < 0 && x.write_error == EPIPE)
		cli_waiting_kill(b, &x.waiting);
	bunker_close(b);
	return cli_execution_finish(args, &x, r, &call.result, &e);
}

static int run_exec(struct arguments *args)
{
	bool streams = args->with_input && !args->json && args->files.count == 0;
	args->exec.env = args->create.env;
	args->exec.env_count = args->create.env_count;
	if (!args->terminal && !args->detach && !streams)
		return run_once(args);
	if (args->files.count > 0 || (args->terminal && args->json)) {
		cli_report(
			"--file and --json do not go with a terminal or a process in the background");
		return STATUS_USAGE;
	}
	int status = cli_execution_take_command(args, 1);
	return status ? status : run_process(args);
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
	{'t', "tty", NULL, OPTION_FLAG, offsetof(struct arguments, terminal),
		"give the command a terminal; -it for one to type at"},
	{'d', "detach", NULL, OPTION_FLAG, offsetof(struct arguments, detach),
		"leave it running, and print its id"},
	{'n', "name", "NAME", OPTION_STRING, offsetof(struct arguments, process_name),
		"with -d or -t: a name that stands for its id"},
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
		"written. With -i its stdin is what is piped into bunker, as it comes; with -it it runs at\n"
		"your terminal, where ~. at the beginning of a line detaches; with -d it goes on alone.\n"
		"So it does when Ctrl-C ends bunker: a line says how to end it. When what reads the\n"
		"output ends, as in exec ... | head, the command is ended. A restart of the server is\n"
		"waited out for 10 s; the output goes on where it was.\n"
		"\n"
		"The exit status is the command's: 124 when it ran out of time, 128+N when signal N\n"
		"killed it, 125 when it could not be run at all. With --json the output is text, in\n"
		"which bytes that are not UTF-8 are replaced.",
	.examples = "  bunker exec work -- ls -la\n"
		    "  bunker exec work --shell 'make && ./test'\n"
		    "  bunker exec -w /srv -u root --timeout 1m work -- chown -R user .\n"
		    "  bunker exec -i work -- sh -s < script.sh\n"
		    "  bunker exec -it work -- vi notes.txt\n"
		    "  bunker exec -d -n web work -- python3 -m http.server 8000",
	.options = exec_options,
	.operands_before_command = 1,
	.min_operands = 1,
	.max_operands = OPERANDS_MANY,
	.run = run_exec,
};
