/* bunker snapshot export and import: snapshots as files, for another server or for later. */
#include <stdio.h>
#include <string.h>

#include "cli/disks.h"
#include "cli/transfer.h"

#define AT(member) offsetof(struct arguments, member)

static const struct option quiet_option[] = {
	{'q', "quiet", NULL, OPTION_FLAG, AT(quiet), "no progress bar"},
	{0},
};

/* ---- export ---- */

static int snapshot_file_work_export(struct job *j, struct bunker_error *e)
{
	struct transfer t;
	const char *format = j->args->template.format;
	bool json = format && strcmp(format, "json") == 0;
	if (format && !json && strcmp(format, "tar") != 0) {
		cli_report("--format is tar or json");
		return JOB_MISUSED;
	}
	if (cli_transfer_receive(&t, j->rest[1] ? j->rest[1] : "-", j->args->quiet) < 0)
		return JOB_SAID;
	int r = json ? bunker_snapshot_export_json(j->bunker, j->rest[0], cli_transfer_write, &t, e)
		     : bunker_snapshot_export(j->bunker, j->rest[0], cli_transfer_write, &t, e);
	return cli_transfer_end(&t, r, e);
}

static const struct option format_option[] = {
	{0, "format", "FORMAT", OPTION_STRING, AT(template.format),
		"tar (.zst, the default), or json, for bunker import"},
	{0},
};

static const struct option *const export_options[] = {
	format_option, quiet_option, cli_connection_options, cli_common_options, NULL};

const struct command cmd_snapshot_export = {
	.name = "snapshot export",
	.summary = "write one to a file",
	.usage = "[options] SNAPSHOT [FILE]",
	.description =
		"Writes a snapshot to FILE, or to stdout: a tar.zst that any tool reads, with a manifest in\n"
		"front and an end that proves it complete. With --format json one object, of which `bunker\n"
		"import` makes a sandbox; see: bunker export.",
	.examples = "  bunker snapshot export web:v1 web.tar.zst\n"
		    "  bunker snapshot export web | ssh other bunker snapshot import -",
	.options = export_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 2,
	.work = snapshot_file_work_export,
};

/* ---- import ---- */

static int snapshot_file_work_import(struct job *j, struct bunker_error *e)
{
	struct transfer t;
	struct bunker_snapshot s;
	struct bunker_snapshot_options options = {
		.description = j->args->create.description, .name = j->rest[1]};
	options.tag = cli_snapshot_split_tag(j->rest[1]);
	if (cli_transfer_send(&t, j->rest[0], j->args->quiet) < 0)
		return JOB_SAID;
	int r = bunker_snapshot_import(j->bunker, &options, cli_transfer_read, &t, &s, e);
	r = cli_transfer_end(&t, r, e);
	if (r == 0)
		cli_snapshot_print_made(j, &s);
	return r;
}

static const struct option description_option[] = {
	{0, "description", "TEXT", OPTION_STRING, AT(create.description),
		"a note for people, instead of the file's"},
	{0},
};

static const struct option *const import_options[] = {
	description_option, quiet_option, cli_connection_options, cli_common_options, NULL};

const struct command cmd_snapshot_import = {
	.name = "snapshot import",
	.summary = "make one of an exported file",
	.usage = "[options] FILE [NAME[:TAG]]",
	.description =
		"Makes a snapshot of FILE, or of stdin with -, which `bunker snapshot export` wrote, and\n"
		"prints its id. The server needs the template it was made on. A file that is not complete,\n"
		"or was changed, leaves nothing.",
	.examples = "  bunker snapshot import web.tar.zst\n"
		    "  bunker snapshot import - web:from-elsewhere < web.tar.zst",
	.options = import_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 2,
	.work = snapshot_file_work_import,
};
