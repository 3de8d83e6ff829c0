#include "cli/job.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "cli/session.h"
#include "cli/target.h"

int cli_job_run(const struct command *command, struct arguments *args)
{
	struct job j = {.args = args, .rest = args->operands + command->in_sandbox};
	struct bunker_error e;
	int r = 0;
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &j.bunker) < 0)
		return STATUS_FAILED;
	if (command->in_sandbox)
		r = cli_target_find(j.bunker, args->operands[0], j.sandbox, &e);
	if (r == 0)
		r = command->work(&j, &e);
	bunker_close(j.bunker);
	if (r < 0 && r != JOB_SAID && r != JOB_MISUSED)
		cli_session_report(args, &e);
	return r == JOB_MISUSED ? STATUS_USAGE : r < 0 ? STATUS_FAILED : 0;
}

bool cli_job_print_json(const struct job *j, const struct bunker_json *json)
{
	autofree char *text = j->args->json ? bunker_json_text(json) : NULL;
	if (text)
		puts(text);
	return text;
}
