#include <cjson/cJSON.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/disks.h"
#include "cli/table.h"
#include "cli/target.h"

struct du {
	struct table table;
	cJSON *disks; /* for --json */
	int64_t bytes, files;
};

static int du_add_row(void *arg, const struct bunker_disk *d)
{
	struct du *du = arg;
	char size[SIZE_TEXT], limit[SIZE_TEXT] = "-", files[24];
	cli_table_format_size((double)d->bytes, size);
	if (d->limit)
		cli_table_format_size((double)d->limit, limit);
	snprintf(files, sizeof files, "%lld", (long long)d->files);
	cli_table_add(&du->table, (const char *const[]){d->kind, *d->name ? d->name : "-", d->id,
					  size, limit, files});
	du->bytes += d->bytes;
	du->files += d->files;
	return 0;
}

static int add_json(void *arg, const struct bunker_disk *d)
{
	struct du *du = arg;
	autofree char *json = bunker_json_text(d->json);
	return cJSON_AddItemToArray(du->disks, cJSON_CreateRaw(json ? json : "null")) ? 0 : -1;
}

static void du_show(struct du *du)
{
	char size[SIZE_TEXT], files[24];
	cli_table_format_size((double)du->bytes, size);
	snprintf(files, sizeof files, "%lld", (long long)du->files);
	cli_table_add(&du->table, (const char *const[]){"total", NULL, NULL, size, NULL, files});
	cli_table_show(&du->table);
}

static int work_du(struct job *j, struct bunker_error *e)
{
	char sandbox[ID_SIZE];
	struct du du = {.table.columns = 6};
	bool json = j->args->json;
	if (j->rest[0] && cli_target_find(j->bunker, j->rest[0], sandbox, e) < 0)
		return -1;
	cJSON *answer = cJSON_CreateObject();
	du.disks = cJSON_AddArrayToObject(answer, "disks");
	cli_table_add(
		&du.table, (const char *const[]){"KIND", "NAME", "ID", "SIZE", "LIMIT", "FILES"});
	int r = bunker_disks(
		j->bunker, j->rest[0] ? sandbox : NULL, json ? add_json : du_add_row, &du, e);
	if (r == 0 && !json)
		du_show(&du);
	autofree char *text = r == 0 && json ? cJSON_PrintUnformatted(answer) : NULL;
	if (text)
		puts(text);
	cli_table_free(&du.table);
	cJSON_Delete(answer);
	return r;
}

static const struct option *const du_options[] = {cli_connection_options, cli_common_options, NULL};

const struct command cmd_du = {
	.name = "du",
	.summary = "show what disks take",
	.usage = "[options] [SANDBOX]",
	.description =
		"Lists sandboxes, checkpoints, snapshots and volumes with what is on their disks, or only a\n"
		"sandbox with its checkpoints. All of each disk is looked at, which takes its time for large\n"
		"ones. What disks share, such as a snapshot and the sandboxes made of it, is counted in each.",
	.examples = "  bunker du\n"
		    "  bunker du --json work",
	.options = du_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.max_operands = 1,
	.work = work_du,
};
