#include <stdio.h>
#include <string.h>

#include "cli/files.h"

static char type_letter(const char *type)
{
	static const struct {
		const char *type;
		char letter;
	} letters[] = {{"directory", 'd'}, {"symlink", 'l'}, {"fifo", 'p'}, {"socket", 's'},
		{"characterDevice", 'c'}, {"blockDevice", 'b'}};
	for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
		if (strcmp(letters[i].type, type) == 0)
			return letters[i].letter;
	return '-';
}

/* In one pass, because it may be long: the widths are those that most entries need. */
static void print_long(const struct bunker_entry *entry)
{
	printf("%c%s %-8s %-8s %12lld %.19s ", type_letter(entry->type), entry->mode,
		entry->owner[0] ? entry->owner : "-", entry->group[0] ? entry->group : "-",
		(long long)entry->size, entry->modified_at);
}

struct listing {
	bool long_form;
	size_t prefix; /* of a path, what is not shown */
};

static int files_ls_print_entry(void *arg, const struct bunker_entry *entry)
{
	const struct listing *l = arg;
	if (l->long_form)
		print_long(entry);
	cli_files_print_text(entry->path + (l->prefix < strlen(entry->path) ? l->prefix : 0));
	if (l->long_form && entry->target[0]) {
		fputs(" -> ", stdout);
		cli_files_print_text(entry->target);
	}
	putchar('\n');
	return 0;
}

static int files_ls_work_ls(struct job *j, struct bunker_error *e)
{
	const struct arguments *args = j->args;
	const char *path = j->rest[0] ? j->rest[0] : ".";
	struct listing l = {.long_form = args->file.long_form};
	struct bunker_entry top;
	unsigned depth = args->file.recursive ? 0
			 : args->file.depth   ? (unsigned)args->file.depth
					      : 1;
	/* Where paths begin is known only there: the working directory may be anywhere. */
	if (bunker_file_stat(j->bunker, j->sandbox, path, true, &args->file.place, &top, e) < 0)
		return -1;
	l.prefix = strlen(top.path) + (strcmp(top.path, "/") != 0);
	bool directory = strcmp(top.type, "directory") == 0;
	if (!directory) {
		l.prefix = 0;
		files_ls_print_entry(&l, &top);
	}
	bunker_entry_finish(&top);
	if (!directory)
		return 0;
	return bunker_file_list(
		j->bunker, j->sandbox, path, depth, &args->file.place, files_ls_print_entry, &l, e);
}

static const struct option own_options[] = {
	{'l', "long", NULL, OPTION_FLAG, offsetof(struct arguments, file.long_form),
		"with type, mode, owner, group, size and time"},
	{'r', "recursive", NULL, OPTION_FLAG, offsetof(struct arguments, file.recursive),
		"with everything below"},
	{'d', "depth", "N", OPTION_NUMBER, offsetof(struct arguments, file.depth),
		"so many levels [1]"},
	{0},
};

static const struct option *const ls_options[] = {
	own_options, cli_files_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_files_ls = {
	.name = "files ls",
	.summary = "list a directory",
	.usage = "[options] SANDBOX [PATH]",
	.description =
		"Lists a directory of a sandbox in the order of names, the working directory by\n"
		"default.",
	.examples = "  bunker files ls work\n  bunker files ls -l work /etc",
	.options = ls_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 2,
	.in_sandbox = true,
	.work = files_ls_work_ls,
};
