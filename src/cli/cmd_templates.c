#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/table.h"

static const char *const titles[] = {"NAME", "DEFAULT", "TAGS", "STATUS", "DESCRIPTION"};
#define COLUMN_COUNT ARRAY_LEN(titles)

static int templates_print_table(const struct bunker_template_list *list)
{
	autofree const char **cells = calloc((list->count + 1) * COLUMN_COUNT, sizeof *cells);
	if (!cells)
		return cli_report("out of memory");
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		cells[i] = titles[i];
	for (size_t i = 0; i < list->count; i++) {
		const char **row = cells + (i + 1) * COLUMN_COUNT;
		row[0] = list->items[i].name;
		row[1] = list->items[i].is_default ? "yes" : "-";
		row[2] = list->items[i].tags[0] ? list->items[i].tags : "-";
		row[3] = list->items[i].status;
		row[4] = list->items[i].description;
	}
	cli_table_print(cells, list->count + 1, COLUMN_COUNT);
	return 0;
}

int cli_templates_list(struct arguments *args)
{
	struct bunker *b;
	struct bunker_template_list list;
	struct bunker_error e;
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &b) < 0)
		return STATUS_FAILED;
	int r = bunker_templates(b, &list, &e);
	bunker_close(b);
	if (r < 0) {
		cli_session_report(args, &e);
		return STATUS_FAILED;
	}
	autofree char *json = args->json ? bunker_json_text(list.json) : NULL;
	r = json ? puts(json) : templates_print_table(&list);
	bunker_template_list_finish(&list);
	return r < 0 ? STATUS_FAILED : 0;
}

static const struct option *const templates_options[] = {
	cli_connection_options, cli_common_options, NULL};

const struct command cmd_templates = {
	.name = "templates",
	.summary = "list what sandboxes can start from",
	.usage = "[options]",
	.description = "Lists the templates of the server, for --template of run and create.",
	.examples = "  bunker templates\n"
		    "  bunker templates --json",
	.options = templates_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.run = cli_templates_list,
};
