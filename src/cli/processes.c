#include "cli/processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/report.h"
#include "cli/table.h"

#define COLUMNS      7
#define COMMAND_MAX  60
#define NUMBER_SIZE  24
#define OUTCOME_SIZE 48

struct row {
	char pid[NUMBER_SIZE];
	char age[AGE_SIZE];
	char outcome[OUTCOME_SIZE];
	char command[COMMAND_MAX + 4];
};

static void format_command(const struct bunker_process *p, char out[COMMAND_MAX + 4])
{
	size_t len = 0;
	out[0] = '\0';
	for (const char **arg = p->argv; *arg && len < COMMAND_MAX; arg++) {
		int n = snprintf(out + len, COMMAND_MAX + 1 - len, "%s%s", len ? " " : "", *arg);
		len += n > 0 ? (size_t)n : 0;
	}
	if (len > COMMAND_MAX)
		memcpy(out + COMMAND_MAX, "...", 4);
}

static void format_row(const struct bunker_process *p, struct row *row)
{
	snprintf(row->pid, sizeof row->pid, "%lld", (long long)p->pid);
	cli_table_format_age(p->started_at, row->age);
	if (p->exit_code >= 0)
		snprintf(row->outcome, sizeof row->outcome, "%s (%d)", p->status, p->exit_code);
	else
		snprintf(row->outcome, sizeof row->outcome, "%s", p->status);
	format_command(p, row->command);
}

static int cli_processes_print_table(const struct bunker_process_list *list)
{
	static const char *const titles[COLUMNS] = {
		"ID", "PID", "NAME", "STATUS", "USER", "AGE", "COMMAND"};
	autofree struct row *rows = calloc(list->count + 1, sizeof *rows);
	autofree const char **cells = calloc((list->count + 1) * COLUMNS, sizeof *cells);
	if (!rows || !cells) {
		cli_report("out of memory");
		return STATUS_FAILED;
	}
	memcpy(cells, titles, sizeof titles);
	for (size_t i = 0; i < list->count; i++) {
		const struct bunker_process *p = &list->items[i];
		format_row(p, &rows[i]);
		const char *const row[COLUMNS] = {p->id, rows[i].pid, p->name, rows[i].outcome,
			p->user, rows[i].age, rows[i].command};
		memcpy(cells + (i + 1) * COLUMNS, row, sizeof row);
	}
	cli_table_print(cells, list->count + 1, COLUMNS);
	return 0;
}

int cli_processes_print(const struct arguments *args, const struct bunker_process_list *list)
{
	if (args->json) {
		autofree char *json = bunker_process_list_json(list);
		puts(json ? json : "");
		return json ? 0 : STATUS_FAILED;
	}
	if (!args->ids_only)
		return cli_processes_print_table(list);
	for (size_t i = 0; i < list->count; i++)
		puts(list->items[i].id);
	return 0;
}
