/* bunker secret: a command of commands. A value is never an argument: those are seen by all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/commands.h"
#include "cli/job.h"
#include "cli/table.h"
#include "model/secret.h"

static const struct command cmd_secret_set, cmd_secret_ls, cmd_secret_rm;
static const struct command *const secret_parts[] = {
	&cmd_secret_set, &cmd_secret_ls, &cmd_secret_rm, NULL};

const struct command cmd_secret = {
	.name = "secret",
	.summary = "values that sandboxes use and never see",
	.usage = "[options] [NAME]",
	.description =
		"Secrets of your key's tenant. A rule of a sandbox (bunker create --header) names one as\n"
		"${secret:NAME}: the value is put into its requests outside of it. So does a variable\n"
		"(-e KEY='${secret:NAME}'), which shows an opaque text inside. Nothing shows a value again.",
	.parts = secret_parts,
};

/* ---- set ---- */

static void secret_wipe(struct buf *value)
{
	if (value->data)
		explicit_bzero(value->data, value->cap);
	buf_finish(value);
}

/* One line's end after the value belongs to the file or the terminal. */
static int secret_read_value(const char *path, struct buf *value)
{
	bool from_file = path && strcmp(path, "-") != 0;
	autoclose int file = from_file ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (from_file && file < 0) {
		fprintf(stderr, "bunker: cannot read %s: %s\n", path, strerror(errno));
		return JOB_SAID;
	}
	if (!from_file && isatty(STDIN_FILENO))
		fprintf(stderr, "bunker: type the value, then Ctrl-D\n");
	if (!buf_reserve(value, 2 * SECRET_VALUE_MAX) ||
		fd_read_all(from_file ? file : STDIN_FILENO, value, SECRET_VALUE_MAX + 2) < 0) {
		fprintf(stderr, "bunker: the value cannot be read, or is longer than %d bytes\n",
			SECRET_VALUE_MAX);
		return JOB_SAID;
	}
	if (value->len > 0 && value->data[value->len - 1] == '\n')
		value->len--;
	if (value->len > 0 && value->data[value->len - 1] == '\r')
		value->len--;
	if (value->len == 0 || memchr(value->data, '\0', value->len)) {
		fprintf(stderr, "bunker: the value is empty, or no text\n");
		return JOB_SAID;
	}
	buf_append_char(value, '\0');
	return 0;
}

static int secret_work_set(struct job *j, struct bunker_error *e)
{
	struct bunker_secret secret;
	__attribute__((cleanup(secret_wipe))) struct buf value = {0};
	int r = secret_read_value(j->args->secret_file, &value);
	if (r == 0)
		r = bunker_secret_put(j->bunker, j->rest[0], value.data, &secret, e);
	if (r < 0)
		return r;
	cli_job_print_json(j, secret.json);
	bunker_secret_finish(&secret);
	return 0;
}

static const struct option secret_set_option[] = {
	{'f', "from-file", "FILE", OPTION_STRING, offsetof(struct arguments, secret_file),
		"read the value from FILE instead of standard input"},
	{0},
};

static const struct option *const secret_set_options[] = {
	secret_set_option, cli_connection_options, cli_common_options, NULL};

static const struct command cmd_secret_set = {
	.name = "secret set",
	.summary = "make one, or give it another value",
	.usage = "[options] NAME",
	.description =
		"Reads the value from standard input or a file, without the line's end, and stores it\n"
		"encrypted. Sandboxes whose rules name it use it with their next request. Needs a key of\n"
		"the scope admin.",
	.examples = "  bunker secret set OPENAI_API_KEY < key.txt\n"
		    "  pass show openai | bunker secret set OPENAI_API_KEY",
	.options = secret_set_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.work = secret_work_set,
};

/* ---- ls ---- */

static void secret_print_table(const struct bunker_secret_list *list)
{
	struct table t = {.columns = 5};
	cli_table_add(&t, (const char *const[]){"NAME", "AGE", "UPDATED", "SANDBOXES", "STATE"});
	for (size_t i = 0; i < list->count; i++) {
		const struct bunker_secret *s = &list->items[i];
		char age[AGE_SIZE], updated[AGE_SIZE], count[24];
		cli_table_format_age(s->created_at, age);
		cli_table_format_age(s->updated_at, updated);
		snprintf(count, sizeof count, "%lld", (long long)s->sandboxes);
		cli_table_add(&t, (const char *const[]){s->name, age, updated, count,
					  s->readable ? "good" : "its key is lost"});
	}
	cli_table_show(&t);
}

static int secret_work_ls(struct job *j, struct bunker_error *e)
{
	struct bunker_secret_list list;
	if (bunker_secret_list(j->bunker, &list, e) < 0)
		return -1;
	autofree char *json = j->args->json ? bunker_secret_list_json(&list) : NULL;
	if (json)
		puts(json);
	else
		secret_print_table(&list);
	bunker_secret_list_finish(&list);
	return 0;
}

static const struct option *const secret_plain_options[] = {
	cli_connection_options, cli_common_options, NULL};

static const struct command cmd_secret_ls = {
	.name = "secret ls",
	.summary = "list them",
	.usage = "[options]",
	.description =
		"Lists the secrets of your key's tenant, and how many sandboxes have a rule that\n"
		"names each. Values are never shown.",
	.examples = "  bunker secret ls",
	.options = secret_plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.work = secret_work_ls,
};

/* ---- rm ---- */

static int secret_work_rm(struct job *j, struct bunker_error *e)
{
	int r = 0;
	for (char **name = j->rest; r == 0 && *name; name++)
		r = bunker_secret_delete(j->bunker, *name, e);
	return r;
}

static const struct command cmd_secret_rm = {
	.name = "secret rm",
	.summary = "delete them",
	.usage = "[options] NAME...",
	.description = "Deletes secrets. One that a sandbox's rule names is not deleted.",
	.examples = "  bunker secret rm OPENAI_API_KEY",
	.options = secret_plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = OPERANDS_MANY,
	.work = secret_work_rm,
};
