#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/table.h"

enum column {
	COLUMN_ID,
	COLUMN_NAME,
	COLUMN_STATUS,
	COLUMN_TEMPLATE,
	COLUMN_AGE,
	COLUMN_EXECUTIONS,
	COLUMN_COUNT
};

static const char *const titles[COLUMN_COUNT] = {
	[COLUMN_ID] = "ID",
	[COLUMN_NAME] = "NAME",
	[COLUMN_STATUS] = "STATUS",
	[COLUMN_TEMPLATE] = "TEMPLATE",
	[COLUMN_AGE] = "AGE",
	[COLUMN_EXECUTIONS] = "EXECUTIONS",
};

/* The cells that are not text already. */
struct made_cells {
	char age[AGE_SIZE];
	char executions[24];
};

static void fill_row(
	const struct bunker_sandbox *s, struct made_cells *made, const char *row[COLUMN_COUNT])
{
	cli_table_format_age(s->created_at, made->age);
	snprintf(made->executions, sizeof made->executions, "%lld", (long long)s->executions);
	row[COLUMN_ID] = s->id;
	row[COLUMN_NAME] = *s->name ? s->name : "-";
	row[COLUMN_STATUS] = s->status;
	row[COLUMN_TEMPLATE] = s->template_name;
	row[COLUMN_AGE] = made->age;
	row[COLUMN_EXECUTIONS] = made->executions;
}

static int ls_print_table(const struct bunker_sandbox_list *list)
{
	autofree const char **cells = calloc((list->count + 1) * COLUMN_COUNT, sizeof *cells);
	autofree struct made_cells *made = calloc(list->count + 1, sizeof *made);
	if (!cells || !made)
		return cli_report("out of memory");
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		cells[i] = titles[i];
	for (size_t i = 0; i < list->count; i++)
		fill_row(&list->items[i], &made[i], cells + (i + 1) * COLUMN_COUNT);
	cli_table_print(cells, list->count + 1, COLUMN_COUNT);
	return 0;
}

static int ls_print_list(const struct arguments *args, const struct bunker_sandbox_list *list)
{
	if (args->json) {
		autofree char *json = bunker_sandbox_list_json(list);
		return json ? (puts(json), 0) : cli_report("out of memory");
	}
	if (!args->ids_only)
		return ls_print_table(list);
	for (size_t i = 0; i < list->count; i++)
		puts(list->items[i].id);
	return 0;
}

static int run_ls(struct arguments *args)
{
	struct bunker *b;
	struct bunker_sandbox_list list;
	struct bunker_error e;
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &b) < 0)
		return STATUS_FAILED;
	int r = bunker_list(b, &args->list, &list, &e);
	bunker_close(b);
	if (r < 0) {
		cli_session_report(args, &e);
		return STATUS_FAILED;
	}
	r = ls_print_list(args, &list);
	bunker_sandbox_list_finish(&list);
	return r < 0 ? STATUS_FAILED : 0;
}

static const struct option own_options[] = {
	{'q', "quiet", NULL, OPTION_FLAG, offsetof(struct arguments, ids_only), "print ids only"},
	{0, "status", "STATUS", OPTION_STRING, offsetof(struct arguments, list.status),
		"only those in this state, such as idle or running"},
	{'n', "name", "NAME", OPTION_STRING, offsetof(struct arguments, list.name),
		"only the one with this name"},
	{'m', "metadata", "K=V", OPTION_LIST, offsetof(struct arguments, metadata),
		"only those with this label; repeatable"},
	{0, "project", "NAME", OPTION_STRING, offsetof(struct arguments, list.project),
		"only those of this project"},
	{0},
};

static const struct option *const ls_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_ls = {
	.name = "ls",
	.summary = "list sandboxes",
	.usage = "[options]",
	.description = "Lists the server's sandboxes.",
	.examples = "  bunker ls\n"
		    "  bunker ls --status running --json\n"
		    "  bunker ls -m team=red",
	.options = ls_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.run = run_ls,
};
