/* bunker volume: a command of commands. */
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/disks.h"
#include "cli/table.h"

static const struct command *const parts[] = {
	&cmd_volume_create, &cmd_volume_ls, &cmd_volume_info, &cmd_volume_rm, NULL};

const struct command cmd_volume = {
	.name = "volume",
	.summary = "directories that sandboxes share",
	.usage = "[options] [VOLUME]",
	.description =
		"Named directories with a limit of their own, mounted into one sandbox or many: bunker\n"
		"create --volume NAME:/PATH[:ro]. They outlive the sandboxes. VOLUME is a name or an id.",
	.parts = parts,
};

static const struct option *const plain_options[] = {
	cli_connection_options, cli_common_options, NULL};

/* ---- create ---- */

static int volume_work_create(struct job *j, struct bunker_error *e)
{
	struct bunker_volume v;
	if (bunker_volume_create(j->bunker, j->rest[0], j->args->disk.size, &v, e) < 0)
		return -1;
	if (!cli_job_print_json(j, v.json))
		puts(v.id);
	bunker_volume_finish(&v);
	return 0;
}

static const struct option create_option[] = {
	{'s', "size", "SIZE", OPTION_STRING, offsetof(struct arguments, disk.size),
		"its limit, such as 20Gi; the default is that of a sandbox's disk"},
	{0},
};

static const struct option *const create_options[] = {
	create_option, cli_connection_options, cli_common_options, NULL};

const struct command cmd_volume_create = {
	.name = "volume create",
	.summary = "make one",
	.usage = "[options] NAME",
	.description = "Makes an empty volume, and prints its id.",
	.examples = "  bunker volume create cache --size 20Gi\n"
		    "  bunker run --volume cache:/cache -- ls -la /cache",
	.options = create_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.work = volume_work_create,
};

/* ---- ls ---- */

static void volume_print_table(const struct bunker_volume_list *list)
{
	struct table t = {.columns = 6};
	cli_table_add(
		&t, (const char *const[]){"NAME", "ID", "SIZE", "SANDBOXES", "AGE", "STATUS"});
	for (size_t i = 0; i < list->count; i++) {
		const struct bunker_volume *v = &list->items[i];
		char age[AGE_SIZE], sandboxes[24];
		cli_table_format_age(v->created_at, age);
		snprintf(sandboxes, sizeof sandboxes, "%lld", (long long)v->sandboxes);
		cli_table_add(&t, (const char *const[]){v->name, v->id, *v->size ? v->size : "-",
					  sandboxes, age, v->status});
	}
	cli_table_show(&t);
}

static int volume_work_ls(struct job *j, struct bunker_error *e)
{
	struct bunker_volume_list list;
	if (bunker_volume_list(j->bunker, &list, e) < 0)
		return -1;
	autofree char *json = j->args->json ? bunker_volume_list_json(&list) : NULL;
	if (json)
		puts(json);
	else
		volume_print_table(&list);
	bunker_volume_list_finish(&list);
	return 0;
}

const struct command cmd_volume_ls = {
	.name = "volume ls",
	.summary = "list them",
	.usage = "[options]",
	.description = "Lists the volumes of the server. What they take: bunker du.",
	.examples = "  bunker volume ls",
	.options = plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.work = volume_work_ls,
};

/* ---- info ---- */

static int volume_work_info(struct job *j, struct bunker_error *e)
{
	struct bunker_volume v;
	char sandboxes[24];
	if (bunker_volume_get(j->bunker, j->rest[0], &v, e) < 0)
		return -1;
	if (!cli_job_print_json(j, v.json)) {
		snprintf(sandboxes, sizeof sandboxes, "%lld", (long long)v.sandboxes);
		cli_table_print_field("id", v.id);
		cli_table_print_field("name", v.name);
		cli_table_print_field("status", v.status);
		cli_table_print_field("size", *v.size ? v.size : "not limited");
		cli_table_print_field("sandboxes", sandboxes);
		cli_table_print_field("created", v.created_at);
	}
	bunker_volume_finish(&v);
	return 0;
}

const struct command cmd_volume_info = {
	.name = "volume info",
	.summary = "tell about one",
	.usage = "[options] VOLUME",
	.description = "Shows its limit, and how many sandboxes have it.",
	.examples = "  bunker volume info cache",
	.options = plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.work = volume_work_info,
};

/* ---- rm ---- */

static int volume_work_rm(struct job *j, struct bunker_error *e)
{
	int r = 0;
	for (char **ref = j->rest; r == 0 && *ref; ref++)
		r = bunker_volume_delete(j->bunker, *ref, e);
	return r;
}

const struct command cmd_volume_rm = {
	.name = "volume rm",
	.summary = "delete them",
	.usage = "[options] VOLUME...",
	.description =
		"Deletes volumes with everything in them. One that a sandbox has is kept, and that is an\n"
		"error.",
	.examples = "  bunker volume rm cache",
	.options = plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = OPERANDS_MANY,
	.work = volume_work_rm,
};
