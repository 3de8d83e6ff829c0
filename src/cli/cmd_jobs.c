#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/execution.h"
#include "cli/processes.h"
#include "cli/session.h"
#include "cli/target.h"

static int list_jobs(struct arguments *args, struct bunker *b);
static int start_job(struct arguments *args, struct bunker *b);
static int stop_job(struct arguments *args, struct bunker *b);
static int wait_for_job(struct arguments *args, struct bunker *b);

/* bunker jobs SANDBOX [VERB ...] */
static const struct {
	const char *name;
	int operands; /* at least, with SANDBOX and VERB */
	int (*run)(struct arguments *args, struct bunker *b);
} verbs[] = {
	{"start", 2, start_job},
	{"stop", 3, stop_job},
	{"wait", 3, wait_for_job},
};

/* ---- list ---- */

static int jobs_list_in(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	return bunker_process_list(b, id, BUNKER_JOBS, 50, arg, e);
}

static int list_jobs(struct arguments *args, struct bunker *b)
{
	struct bunker_error e;
	struct bunker_process_list list = {0};
	int status = STATUS_FAILED;
	if (cli_target_apply(b, args->operands[0], jobs_list_in, &list, &e) < 0)
		cli_session_report(args, &e);
	else
		status = cli_processes_print(args, &list);
	bunker_process_list_finish(&list);
	return status;
}

/* ---- one ---- */

struct job_call {
	const struct arguments *args;
	struct bunker_process job;
};

/* Prints it, as JSON or by its id and status. */
static void print_job(const struct arguments *args, const struct bunker_process *job)
{
	autofree char *json = args->json ? bunker_json_text(job->json) : NULL;
	if (json)
		puts(json);
	else
		printf("%s %s\n", job->id, job->status);
}

static int call_job(struct arguments *args, struct bunker *b, target_fn *fn)
{
	struct job_call call = {.args = args};
	struct bunker_error e;
	if (cli_target_apply(b, args->operands[0], fn, &call, &e) < 0) {
		cli_session_report(args, &e);
		return STATUS_FAILED;
	}
	print_job(args, &call.job);
	int status = call.job.exit_code > 0 && strcmp(call.job.status, "failed") == 0
			     ? call.job.exit_code
			     : 0;
	bunker_process_finish(&call.job);
	return status;
}

static int jobs_start_in(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	struct job_call *call = arg;
	const struct bunker_process_options options = {
		.command = call->args->exec, .name = call->args->process_name, .job = true};
	return bunker_process_start(b, id, &options, &call->job, e);
}

static int start_job(struct arguments *args, struct bunker *b)
{
	int status = cli_execution_take_command(args, 2);
	if (status)
		return status;
	args->exec.env = args->create.env;
	args->exec.env_count = args->create.env_count;
	return call_job(args, b, jobs_start_in);
}

static int stop_in(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	struct job_call *call = arg;
	const struct arguments *args = call->args;
	return bunker_job_stop(b, id, args->operands[2], args->grace, args->force, &call->job, e);
}

static int stop_job(struct arguments *args, struct bunker *b)
{
	return call_job(args, b, stop_in);
}

static int wait_in(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	struct job_call *call = arg;
	const char *wait = call->args->wait ? call->args->wait : "10m";
	return bunker_process_get(b, id, call->args->operands[2], wait, &call->job, e);
}

static int wait_for_job(struct arguments *args, struct bunker *b)
{
	return call_job(args, b, wait_in);
}

static int run_jobs(struct arguments *args)
{
	struct bunker *b;
	int (*run)(struct arguments *, struct bunker *) =
		args->operand_count == 1 ? list_jobs : NULL;
	for (size_t i = 0; args->operand_count > 1 && i < ARRAY_LEN(verbs); i++)
		if (strcmp(args->operands[1], verbs[i].name) == 0 &&
			args->operand_count >= verbs[i].operands)
			run = verbs[i].run;
	if (!run) {
		cli_report(
			"after SANDBOX comes start COMMAND, stop JOB or wait JOB; see: bunker jobs --help");
		return STATUS_USAGE;
	}
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &b) < 0)
		return STATUS_FAILED;
	int status = run(args, b);
	bunker_close(b);
	return status;
}

static const struct option own_options[] = {
	{'n', "name", "NAME", OPTION_STRING, offsetof(struct arguments, process_name),
		"start: a name that stands for its id"},
	{'c', "shell", "LINE", OPTION_STRING, offsetof(struct arguments, exec.shell),
		"start: a line of shell instead of COMMAND"},
	{'e', "env", "K=V", OPTION_LIST, offsetof(struct arguments, env),
		"start: environment variable; K alone takes yours; repeatable"},
	{'u', "user", "NAME", OPTION_STRING, offsetof(struct arguments, exec.user),
		"start: run as this user of the sandbox"},
	{'w', "workdir", "PATH", OPTION_STRING, offsetof(struct arguments, exec.cwd),
		"start: where the command starts"},
	{0, "timeout", "TIME", OPTION_STRING, offsetof(struct arguments, exec.timeout),
		"start: kill it after so long"},
	{0, "grace", "TIME", OPTION_STRING, offsetof(struct arguments, grace),
		"stop: from SIGTERM to SIGKILL; 10s by default"},
	{0, "force", NULL, OPTION_FLAG, offsetof(struct arguments, force), "stop: SIGKILL at once"},
	{0, "for", "TIME", OPTION_STRING, offsetof(struct arguments, wait),
		"wait: not longer than this; 10m at most"},
	{'q', "ids", NULL, OPTION_FLAG, offsetof(struct arguments, ids_only),
		"list: print only the ids"},
	{0},
};

static const struct option *const jobs_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_jobs = {
	.name = "jobs",
	.summary = "start, list and stop jobs",
	.usage = "[options] SANDBOX [start COMMAND [ARG...] | stop JOB | wait JOB]",
	.description =
		"A job is a command in the background with a status: pending, running, completed,\n"
		"failed or cancelled. Alone it lists them. stop sends SIGTERM to everything the job\n"
		"started and SIGKILL to what is left after the grace; wait ends with the job, with its\n"
		"exit status when it failed. Its output: bunker logs SANDBOX JOB.",
	.examples = "  bunker jobs -n build work start make -j4\n"
		    "  bunker jobs work\n"
		    "  bunker jobs --for 1m work wait build\n"
		    "  bunker jobs --grace 2s work stop build",
	.options = jobs_options,
	.operands_before_command = 2,
	.min_operands = 1,
	.max_operands = OPERANDS_MANY,
	.run = run_jobs,
};
