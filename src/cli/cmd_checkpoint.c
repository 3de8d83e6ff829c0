/* bunker checkpoint: a command of commands. */
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/ask.h"
#include "cli/disks.h"
#include "cli/table.h"

static const struct command *const parts[] = {&cmd_checkpoint_create, &cmd_checkpoint_ls,
	&cmd_checkpoint_restore, &cmd_checkpoint_rm, NULL};

const struct command cmd_checkpoint = {
	.name = "checkpoint",
	.summary = "restore points of a sandbox",
	.usage = "[options] SANDBOX [NAME]",
	.description =
		"Named restore points of a sandbox's disk. They are deleted with their sandbox; what is to\n"
		"outlive it: bunker commit.",
	.parts = parts,
};

static const struct option *const plain_options[] = {
	cli_connection_options, cli_common_options, NULL};

/* ---- create ---- */

static int checkpoint_work_create(struct job *j, struct bunker_error *e)
{
	struct bunker_checkpoint c;
	if (bunker_checkpoint_create(j->bunker, j->sandbox, j->rest[0], &c, e) < 0)
		return -1;
	if (!cli_job_print_json(j, c.json))
		puts(c.id);
	bunker_checkpoint_finish(&c);
	return 0;
}

const struct command cmd_checkpoint_create = {
	.name = "checkpoint create",
	.summary = "make one",
	.usage = "[options] SANDBOX NAME",
	.description =
		"Keeps the disk as it is at this moment, and prints the checkpoint's id. A running sandbox\n"
		"stands still for milliseconds. Processes and memory are no part of it.",
	.examples = "  bunker checkpoint create work before-upgrade",
	.options = plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 2,
	.max_operands = 2,
	.in_sandbox = true,
	.work = checkpoint_work_create,
};

/* ---- ls ---- */

static void checkpoint_print_table(const struct bunker_checkpoint_list *list)
{
	struct table t = {.columns = 4};
	cli_table_add(&t, (const char *const[]){"NAME", "ID", "AGE", "STATUS"});
	for (size_t i = 0; i < list->count; i++) {
		const struct bunker_checkpoint *c = &list->items[i];
		char age[AGE_SIZE];
		cli_table_format_age(c->created_at, age);
		cli_table_add(&t, (const char *const[]){c->name, c->id, age, c->status});
	}
	cli_table_show(&t);
}

static int checkpoint_work_ls(struct job *j, struct bunker_error *e)
{
	struct bunker_checkpoint_list list;
	if (bunker_checkpoint_list(j->bunker, j->sandbox, &list, e) < 0)
		return -1;
	autofree char *json = j->args->json ? bunker_checkpoint_list_json(&list) : NULL;
	if (json)
		puts(json);
	else
		checkpoint_print_table(&list);
	bunker_checkpoint_list_finish(&list);
	return 0;
}

const struct command cmd_checkpoint_ls = {
	.name = "checkpoint ls",
	.summary = "list them",
	.usage = "[options] SANDBOX",
	.description = "Lists the checkpoints of a sandbox, oldest first.",
	.examples = "  bunker checkpoint ls work",
	.options = plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.in_sandbox = true,
	.work = checkpoint_work_ls,
};

/* ---- restore ---- */

/* Scripts have decided. */
static bool restore_is_wanted(const struct job *j)
{
	if (j->args->disk.yes || !isatty(STDIN_FILENO))
		return true;
	return cli_ask("Throw away what was written since %s and end the processes of %s?",
		j->rest[0], j->args->operands[0]);
}

static int work_restore(struct job *j, struct bunker_error *e)
{
	struct bunker_sandbox s;
	if (!restore_is_wanted(j)) {
		cli_report("nothing was thrown away");
		return JOB_SAID;
	}
	if (bunker_checkpoint_restore(j->bunker, j->sandbox, j->rest[0], &s, e) < 0)
		return -1;
	if (!cli_job_print_json(j, s.json))
		printf("%s %s\n", s.id, s.status);
	bunker_sandbox_finish(&s);
	return 0;
}

static const struct option restore_option[] = {
	{'y', "yes", NULL, OPTION_FLAG, offsetof(struct arguments, disk.yes), "do not ask"},
	{0},
};
static const struct option *const restore_options[] = {
	restore_option, cli_connection_options, cli_common_options, NULL};

const struct command cmd_checkpoint_restore = {
	.name = "checkpoint restore",
	.summary = "go back to one",
	.usage = "[options] SANDBOX NAME",
	.description =
		"The sandbox's disk becomes what it was then; what was written since is lost. Its processes\n"
		"end, and it is booted anew. The checkpoint stays. At a terminal it asks first; bunker\n"
		"discard --to also says what would be lost.",
	.examples = "  bunker checkpoint restore work before-upgrade\n"
		    "  bunker checkpoint restore -y work before-upgrade",
	.options = restore_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 2,
	.max_operands = 2,
	.in_sandbox = true,
	.work = work_restore,
};

/* ---- rm ---- */

static int checkpoint_work_rm(struct job *j, struct bunker_error *e)
{
	int r = 0;
	for (char **name = j->rest; r == 0 && *name; name++)
		r = bunker_checkpoint_delete(j->bunker, j->sandbox, *name, e);
	return r;
}

const struct command cmd_checkpoint_rm = {
	.name = "checkpoint rm",
	.summary = "delete them",
	.usage = "[options] SANDBOX NAME...",
	.description = "Deletes checkpoints; the sandbox's disk stays as it is.",
	.examples = "  bunker checkpoint rm work before-upgrade",
	.options = plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 2,
	.max_operands = OPERANDS_MANY,
	.in_sandbox = true,
	.work = checkpoint_work_rm,
};
