/* bunker export and import: a sandbox as one JSON object. */
#include <stdio.h>

#include "cli/job.h"
#include "cli/transfer.h"

#define AT(member) offsetof(struct arguments, member)

static const struct option quiet_option[] = {
	{'q', "quiet", NULL, OPTION_FLAG, AT(quiet), "no progress bar"},
	{0},
};

/* ---- export ---- */

static int export_work_export(struct job *j, struct bunker_error *e)
{
	struct transfer t;
	if (cli_transfer_receive(&t, j->rest[0] ? j->rest[0] : "-", j->args->quiet) < 0)
		return JOB_SAID;
	int r = bunker_export(j->bunker, j->sandbox, j->args->disk.path, cli_transfer_write, &t, e);
	return cli_transfer_end(&t, r, e);
}

static const struct option path_option[] = {
	{'p', "path", "PATH", OPTION_STRING, AT(disk.path),
		"only what is below, such as /home/user"},
	{0},
};

static const struct option *const export_options[] = {
	path_option, quiet_option, cli_connection_options, cli_common_options, NULL};

const struct command cmd_export = {
	.name = "export",
	.summary = "write a sandbox to a file, as JSON",
	.usage = "[options] SANDBOX [FILE]",
	.description =
		"Writes what a sandbox has changed over its template, and its variables, as one JSON object\n"
		"to FILE, or to stdout: files with their modes, owners and times, directories, links, and\n"
		"what was deleted. For any place that keeps text, and for `bunker import` here or elsewhere.\n"
		"The disk is read while the sandbox runs; for one moment in time: bunker snapshot export.",
	.examples = "  bunker export work work.json\n"
		    "  bunker export --path /home/user work | jq '.files[].path'\n"
		    "  bunker export work | ssh other bunker import - --name work",
	.options = export_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 2,
	.in_sandbox = true,
	.work = export_work_export,
};

/* ---- import ---- */

static int export_work_import(struct job *j, struct bunker_error *e)
{
	struct transfer t;
	struct bunker_sandbox s;
	if (cli_transfer_send(&t, j->rest[0], j->args->quiet) < 0)
		return JOB_SAID;
	int r = bunker_import(j->bunker, &j->args->create, cli_transfer_read, &t, &s, e);
	r = cli_transfer_end(&t, r, e);
	if (r < 0)
		return r;
	if (!cli_job_print_json(j, s.json))
		puts(s.id);
	bunker_sandbox_finish(&s);
	return 0;
}

static const struct option own_options[] = {
	{'n', "name", "NAME", OPTION_STRING, AT(create.name), "a name that stands for its id"},
	{'t', "template", "NAME", OPTION_STRING, AT(create.template_name),
		"what its disk starts from, instead of what the object says"},
	{0, "description", "TEXT", OPTION_STRING, AT(create.description), "a note for people"},
	{0, "project", "NAME", OPTION_STRING, AT(create.project), "the project it belongs to"},
	{0},
};

static const struct option *const import_options[] = {
	own_options, quiet_option, cli_connection_options, cli_common_options, NULL};

const struct command cmd_import = {
	.name = "import",
	.summary = "make a sandbox of such a file",
	.usage = "[options] FILE",
	.description =
		"Makes a sandbox of FILE, or of stdin with -, which `bunker export` wrote, and prints its\n"
		"id. Objects of others with only files (path, contents, encoding) and env are taken, too:\n"
		"those files go to the working directory. If anything is wrong with it, there is no sandbox.",
	.examples = "  bunker import work.json --name again",
	.options = import_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.work = export_work_import,
};
