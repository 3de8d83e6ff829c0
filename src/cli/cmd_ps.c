#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/processes.h"
#include "cli/session.h"
#include "cli/target.h"

/* With --all, how many of those that have ended. */
#define ENDED_MAX 50

struct listing {
	bool all;
	struct bunker_process_list running, ended;
};

static int ps_list_in(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	struct listing *l = arg;
	int r = bunker_process_list(b, id, BUNKER_RUNNING, 0, &l->running, e);
	if (r == 0 && l->all)
		r = bunker_process_list(b, id, BUNKER_ENDED, ENDED_MAX, &l->ended, e);
	return r;
}

/* One list of both; the items move. */
static int ps_join(struct listing *l)
{
	struct bunker_process_list *all = &l->running, *more = &l->ended;
	if (more->count == 0)
		return 0;
	struct bunker_process *items =
		reallocarray(all->items, all->count + more->count, sizeof *items);
	if (!items)
		return cli_report("out of memory");
	memcpy(items + all->count, more->items, more->count * sizeof *items);
	all->items = items;
	all->count += more->count;
	more->count = 0;
	return 0;
}

static int run_ps(struct arguments *args)
{
	struct bunker *b;
	struct bunker_error e;
	struct listing l = {.all = args->all};
	int status = STATUS_FAILED;
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &b) < 0)
		return STATUS_FAILED;
	if (cli_target_apply(b, args->operands[0], ps_list_in, &l, &e) < 0)
		cli_session_report(args, &e);
	else if (ps_join(&l) == 0)
		status = cli_processes_print(args, &l.running);
	bunker_process_list_finish(&l.running);
	bunker_process_list_finish(&l.ended);
	bunker_close(b);
	return status;
}

static const struct option own_options[] = {
	{'a', "all", NULL, OPTION_FLAG, offsetof(struct arguments, all),
		"also the last 50 that have ended"},
	{'q', "ids", NULL, OPTION_FLAG, offsetof(struct arguments, ids_only), "print only the ids"},
	{0},
};

static const struct option *const ps_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_ps = {
	.name = "ps",
	.summary = "list the processes of a sandbox",
	.usage = "[options] SANDBOX",
	.description =
		"Lists what was started in a sandbox and runs: commands, processes, jobs. What they\n"
		"started themselves is not listed; bunker exec SANDBOX ps shows everything.",
	.examples = "  bunker ps work\n"
		    "  bunker ps -a --json work",
	.options = ps_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.run = run_ps,
};
