/* bunker files: a command of commands; here are those that need few words. */
#include "cli/files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/target.h"

static const struct command *const parts[] = {&cmd_files_ls, &cmd_files_cat, &cmd_files_stat,
	&cmd_files_find, &cmd_files_grep, &cmd_files_mkdir, &cmd_files_rm, &cmd_files_watch, NULL};

const struct command cmd_files = {
	.name = "files",
	.summary = "list, read, search, remove and watch files of a sandbox",
	.usage = "[options] SANDBOX [arguments]",
	.description = "Files of a sandbox, from outside. To copy them: bunker cp.",
	.parts = parts,
};

/* ---- what they share ---- */

const struct option cli_files_options[] = {
	{'u', "user", "NAME", OPTION_STRING, offsetof(struct arguments, file.place.user),
		"with the rights of this user of the sandbox"},
	{'w', "workdir", "PATH", OPTION_STRING, offsetof(struct arguments, file.place.cwd),
		"where relative paths begin"},
	{0},
};

void cli_files_print_text(const char *text)
{
	if (!isatty(STDOUT_FILENO)) {
		fputs(text, stdout);
		return;
	}
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		putchar(*p < ' ' || *p == 0x7f ? '?' : *p);
}

static const struct option recursive_option[] = {
	{'r', "recursive", NULL, OPTION_FLAG, offsetof(struct arguments, file.recursive),
		"with everything below"},
	{0},
};
static const struct option *const plain_options[] = {
	cli_files_options, cli_connection_options, cli_common_options, NULL};
static const struct option *const recursive_options[] = {
	recursive_option, cli_files_options, cli_connection_options, cli_common_options, NULL};

/* ---- cat ---- */

static int files_write_out(void *arg, const void *data, size_t size)
{
	(void)arg;
	return fd_write_all(STDOUT_FILENO, data, size);
}

static int work_cat(struct job *j, struct bunker_error *e)
{
	int r = 0;
	for (char **path = j->rest; r == 0 && *path; path++)
		r = bunker_file_read(j->bunker, j->sandbox, *path, &j->args->file.place,
			files_write_out, NULL, e);
	return r;
}

const struct command cmd_files_cat = {
	.name = "files cat",
	.summary = "print files",
	.usage = "[options] SANDBOX PATH...",
	.description = "Prints files of a sandbox, whatever their size.",
	.examples = "  bunker files cat work /etc/os-release",
	.options = plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 2,
	.max_operands = OPERANDS_MANY,
	.in_sandbox = true,
	.work = work_cat,
};

/* ---- rm ---- */

static int files_work_rm(struct job *j, struct bunker_error *e)
{
	int r = 0;
	for (char **path = j->rest; r == 0 && *path; path++)
		r = bunker_file_remove(j->bunker, j->sandbox, *path, j->args->file.recursive,
			&j->args->file.place, e);
	return r;
}

const struct command cmd_files_rm = {
	.name = "files rm",
	.summary = "remove files and directories",
	.usage = "[options] SANDBOX PATH...",
	.description = "Removes files, empty directories and, with -r, whole trees of a sandbox.",
	.examples = "  bunker files rm -r work build",
	.options = recursive_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 2,
	.max_operands = OPERANDS_MANY,
	.in_sandbox = true,
	.work = files_work_rm,
};

/* ---- mkdir ---- */

static int work_mkdir(struct job *j, struct bunker_error *e)
{
	int r = 0;
	for (char **path = j->rest; r == 0 && *path; path++)
		r = bunker_file_mkdir(j->bunker, j->sandbox, *path, &j->args->file.place, e);
	return r;
}

const struct command cmd_files_mkdir = {
	.name = "files mkdir",
	.summary = "make directories",
	.usage = "[options] SANDBOX PATH...",
	.description = "Makes directories in a sandbox, with those above them.",
	.examples = "  bunker files mkdir work src/lib",
	.options = plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 2,
	.max_operands = OPERANDS_MANY,
	.in_sandbox = true,
	.work = work_mkdir,
};

/* ---- stat ---- */

static void files_print_entry(const struct bunker_entry *entry)
{
	char size[24], owner[256];
	snprintf(size, sizeof size, "%lld", (long long)entry->size);
	snprintf(owner, sizeof owner, "%s (%lld) %s (%lld)", entry->owner, (long long)entry->uid,
		entry->group, (long long)entry->gid);
	const struct {
		const char *title, *value;
	} fields[] = {{"path", entry->path}, {"type", entry->type}, {"size", size},
		{"mode", entry->mode}, {"owner", owner}, {"modified", entry->modified_at}};
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		cli_table_print_field(fields[i].title, fields[i].value);
	if (entry->target[0])
		cli_table_print_field("target", entry->target);
}

static int work_stat(struct job *j, struct bunker_error *e)
{
	struct bunker_entry entry;
	int r = bunker_file_stat(j->bunker, j->sandbox, j->rest[0], j->args->file.follow,
		&j->args->file.place, &entry, e);
	if (r < 0)
		return r;
	autofree char *json = j->args->json ? bunker_json_text(entry.json) : NULL;
	if (json)
		puts(json);
	else
		files_print_entry(&entry);
	bunker_entry_finish(&entry);
	return 0;
}

static const struct option stat_option[] = {
	{'L', "follow", NULL, OPTION_FLAG, offsetof(struct arguments, file.follow),
		"what a link leads to, instead of the link"},
	{0},
};
static const struct option *const stat_options[] = {
	stat_option, cli_files_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_files_stat = {
	.name = "files stat",
	.summary = "tell about a file",
	.usage = "[options] SANDBOX PATH",
	.description = "Tells type, size, mode, owner and time of a file.",
	.examples = "  bunker files stat work notes.txt",
	.options = stat_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 2,
	.max_operands = 2,
	.in_sandbox = true,
	.work = work_stat,
};
