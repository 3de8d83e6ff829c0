/* bunker snapshot: a command of commands. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/disks.h"
#include "cli/table.h"

static const struct command *const parts[] = {&cmd_snapshot_create, &cmd_snapshot_ls,
	&cmd_snapshot_info, &cmd_snapshot_tag, &cmd_snapshot_rm, &cmd_snapshot_export,
	&cmd_snapshot_import, NULL};

const struct command cmd_snapshot = {
	.name = "snapshot",
	.summary = "disks that new sandboxes begin with",
	.usage = "[options] [arguments]",
	.description =
		"Copies of sandboxes' disks that outlive them, for new sandboxes to begin with: bunker\n"
		"create --snapshot NAME[:TAG]. SNAPSHOT is an id, NAME (its tag \"latest\", or the newest),\n"
		"NAME:TAG, or a tag that only one has.",
	.parts = parts,
};

#define AT(member) offsetof(struct arguments, member)

static const struct option *const plain_options[] = {
	cli_connection_options, cli_common_options, NULL};

char *cli_snapshot_split_tag(char *ref)
{
	char *colon = ref ? strrchr(ref, ':') : NULL;
	if (!colon)
		return NULL;
	*colon = '\0';
	return colon + 1;
}

void cli_snapshot_print_made(const struct job *j, struct bunker_snapshot *s)
{
	if (!cli_job_print_json(j, s->json))
		puts(s->id);
	bunker_snapshot_finish(s);
}

/* ---- create ---- */

static int snapshot_work_create(struct job *j, struct bunker_error *e)
{
	struct bunker_snapshot s;
	struct bunker_snapshot_options options = {
		.description = j->args->create.description, .name = j->rest[0]};
	options.tag = cli_snapshot_split_tag(j->rest[0]);
	if (bunker_snapshot_create(j->bunker, j->sandbox, &options, &s, e) < 0)
		return -1;
	cli_snapshot_print_made(j, &s);
	return 0;
}

static const struct option description_option[] = {
	{0, "description", "TEXT", OPTION_STRING, AT(create.description), "a note for people"},
	{0},
};

static const struct option *const create_options[] = {
	description_option, cli_connection_options, cli_common_options, NULL};

const struct command cmd_snapshot_create = {
	.name = "snapshot create",
	.summary = "make one of a sandbox",
	.usage = "[options] SANDBOX [NAME[:TAG]]",
	.description =
		"Keeps the disk of a sandbox as it is at this moment, and prints the snapshot's id. The\n"
		"same as bunker commit, but that it needs no name.",
	.examples = "  bunker snapshot create work web:v1",
	.options = create_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 2,
	.in_sandbox = true,
	.work = snapshot_work_create,
};

/* ---- ls ---- */

static void format_size(const struct bunker_snapshot *s, char out[SIZE_TEXT])
{
	if (s->size < 0)
		snprintf(out, SIZE_TEXT, "?");
	else
		cli_table_format_size((double)s->size, out);
}

static void snapshot_print_table(const struct bunker_snapshot_list *list)
{
	struct table t = {.columns = 7};
	cli_table_add(
		&t, (const char *const[]){"NAME", "TAG", "ID", "TEMPLATE", "SIZE", "FILES", "AGE"});
	for (size_t i = 0; i < list->count; i++) {
		const struct bunker_snapshot *s = &list->items[i];
		char age[AGE_SIZE], size[SIZE_TEXT], files[24] = "?";
		cli_table_format_age(s->created_at, age);
		format_size(s, size);
		if (s->files >= 0)
			snprintf(files, sizeof files, "%lld", (long long)s->files);
		cli_table_add(
			&t, (const char *const[]){*s->name ? s->name : "-", *s->tag ? s->tag : "-",
				    s->id, s->template_name, size, files, age});
	}
	cli_table_show(&t);
}

static int snapshot_print_list(const struct job *j, const struct bunker_snapshot_list *list)
{
	autofree char *json = j->args->json ? bunker_snapshot_list_json(list) : NULL;
	if (json)
		puts(json);
	else if (!j->args->ids_only)
		snapshot_print_table(list);
	for (size_t i = 0; j->args->ids_only && !json && i < list->count; i++)
		puts(list->items[i].id);
	return 0;
}

static int snapshot_work_ls(struct job *j, struct bunker_error *e)
{
	struct bunker_snapshot_list list;
	if (bunker_snapshot_list(j->bunker, j->rest[0], &list, e) < 0)
		return -1;
	int r = snapshot_print_list(j, &list);
	bunker_snapshot_list_finish(&list);
	return r;
}

static const struct option ls_option[] = {
	{'q', "quiet", NULL, OPTION_FLAG, AT(ids_only), "print ids only"},
	{0},
};

static const struct option *const ls_options[] = {
	ls_option, cli_connection_options, cli_common_options, NULL};

const struct command cmd_snapshot_ls = {
	.name = "snapshot ls",
	.summary = "list them",
	.usage = "[options] [NAME]",
	.description = "Lists the snapshots of the server, or those with a name.",
	.examples = "  bunker snapshot ls\n"
		    "  bunker snapshot ls web --json",
	.options = ls_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.max_operands = 1,
	.work = snapshot_work_ls,
};

/* ---- info ---- */

static void print_snapshot(const struct bunker_snapshot *s)
{
	char size[SIZE_TEXT], files[24] = "?";
	format_size(s, size);
	if (s->files >= 0)
		snprintf(files, sizeof files, "%lld", (long long)s->files);
	const struct {
		const char *title, *value;
	} fields[] = {{"id", s->id}, {"name", s->name}, {"tag", s->tag},
		{"description", s->description}, {"status", s->status},
		{"template", s->template_name}, {"parent", s->parent}, {"made of", s->sandbox_id},
		{"created", s->created_at}, {"size", size}, {"files", files}};
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (*fields[i].value)
			cli_table_print_field(fields[i].title, fields[i].value);
}

static int snapshot_work_info(struct job *j, struct bunker_error *e)
{
	struct bunker_snapshot s;
	if (bunker_snapshot_get(j->bunker, j->rest[0], &s, e) < 0)
		return -1;
	if (!cli_job_print_json(j, s.json))
		print_snapshot(&s);
	bunker_snapshot_finish(&s);
	return 0;
}

const struct command cmd_snapshot_info = {
	.name = "snapshot info",
	.summary = "tell about one",
	.usage = "[options] SNAPSHOT",
	.description = "Shows name, tag, template, parent, size and number of files.",
	.examples = "  bunker snapshot info web:v1",
	.options = plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.work = snapshot_work_info,
};

/* ---- tag ---- */

static int snapshot_work_tag(struct job *j, struct bunker_error *e)
{
	struct bunker_snapshot s;
	const char *tag = j->rest[1];
	if (!tag == !j->args->disk.untag) {
		cli_report("give either the new tag or --none");
		return JOB_MISUSED;
	}
	if (bunker_snapshot_tag(j->bunker, j->rest[0], tag, &s, e) < 0)
		return -1;
	cli_snapshot_print_made(j, &s);
	return 0;
}

static const struct option tag_option[] = {
	{0, "none", NULL, OPTION_FLAG, AT(disk.untag), "take its tag away"},
	{0},
};

static const struct option *const tag_options[] = {
	tag_option, cli_connection_options, cli_common_options, NULL};

const struct command cmd_snapshot_tag = {
	.name = "snapshot tag",
	.summary = "give one another tag, or none",
	.usage = "[options] SNAPSHOT TAG | --none SNAPSHOT",
	.description =
		"A snapshot has one tag. Another snapshot of the same name that has this one loses it.",
	.examples = "  bunker snapshot tag web:v1 stable\n"
		    "  bunker snapshot tag --none web:v1",
	.options = tag_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 2,
	.work = snapshot_work_tag,
};

/* ---- rm ---- */

static int snapshot_work_rm(struct job *j, struct bunker_error *e)
{
	int r = 0;
	for (char **ref = j->rest; r == 0 && *ref; ref++)
		r = bunker_snapshot_delete(j->bunker, *ref, e);
	return r;
}

const struct command cmd_snapshot_rm = {
	.name = "snapshot rm",
	.summary = "delete them",
	.usage = "[options] SNAPSHOT...",
	.description =
		"Deletes snapshots. One that a sandbox stands on is kept, and that is an error.",
	.examples = "  bunker snapshot rm web:v1",
	.options = plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = OPERANDS_MANY,
	.work = snapshot_work_rm,
};
