/* bunker template: a command of commands, each with an entry of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/template.h"

static const struct command *const parts[] = {&cmd_template_ls, &cmd_template_info,
	&cmd_template_import, &cmd_template_build, &cmd_template_debian, &cmd_template_tag,
	&cmd_template_untag, &cmd_template_rm, &cmd_template_log, NULL};

const struct command cmd_template = {
	.name = "template",
	.summary = "make, tag and delete what sandboxes start from",
	.usage = "[options] [arguments]",
	.description =
		"What sandboxes start from: made of images, of Dockerfiles, of a clean Debian.",
	.parts = parts,
};

/* ---- what they share ---- */

ptrdiff_t cli_template_read(void *fd, char *data, size_t size)
{
	ssize_t n;
	do
		n = read(*(int *)fd, data, size);
	while (n < 0 && errno == EINTR);
	return n;
}

int cli_template_report(const struct arguments *args, struct bunker_build *build)
{
	autofree char *json = args->json ? bunker_json_text(build->json) : NULL;
	int status = strcmp(build->status, "ready") == 0 ? 0 : STATUS_FAILED;
	if (json)
		puts(json);
	else if (status == 0)
		puts(build->id);
	if (status && *build->failed_step)
		cli_report("the build failed at step %s: %s", build->failed_step, build->reason);
	else if (status)
		cli_report("the build is %s: %s", build->status, build->reason);
	bunker_build_finish(build);
	return status;
}

static int template_print_entry(void *arg, const struct bunker_log_entry *entry)
{
	(void)arg;
	fprintf(stderr, "%s %s\n", entry->step, entry->message);
	return 0;
}

int cli_template_follow(struct arguments *args, struct bunker *b, const char *id)
{
	struct bunker_build build;
	struct bunker_error e;
	if (bunker_build_follow(
		    b, id, args->quiet ? NULL : template_print_entry, NULL, &build, &e) < 0) {
		cli_session_report(args, &e);
		return STATUS_FAILED;
	}
	return cli_template_report(args, &build);
}

static const struct option *const plain_options[] = {
	cli_connection_options, cli_common_options, NULL};

/* ---- ls ---- */

const struct command cmd_template_ls = {
	.name = "template ls",
	.summary = "list them",
	.usage = "[options]",
	.description = "Lists the templates of the server, with their tags.",
	.examples = "  bunker template ls\n  bunker template ls --json",
	.options = plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.run = cli_templates_list,
};

/* ---- info ---- */

static int template_work_info(struct job *j, struct bunker_error *e)
{
	struct bunker_json *json;
	if (bunker_template_get(j->bunker, j->rest[0], &json, e) < 0)
		return -1;
	autofree char *text = bunker_json_text(json);
	puts(text ? text : "");
	bunker_json_free(json);
	return 0;
}

const struct command cmd_template_info = {
	.name = "template info",
	.summary = "one of them, with its builds, as JSON",
	.usage = "[options] NAME",
	.description = "Prints what the server knows of a template: tags, builds, and what its\n"
		       "sandboxes get.",
	.examples = "  bunker template info python",
	.options = plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.work = template_work_info,
};

/* ---- tag, untag, rm ---- */

/* "NAME:TAG" in argv itself; NULL: there is no tag. */
static char *split_tag(char *ref)
{
	char *colon = strrchr(ref, ':');
	if (!colon)
		return NULL;
	*colon = '\0';
	return colon + 1;
}

static int template_work_tag(struct job *j, struct bunker_error *e)
{
	char *build = split_tag(j->rest[0]);
	return bunker_template_tag(j->bunker, j->rest[0], j->rest[1], build, e);
}

const struct command cmd_template_tag = {
	.name = "template tag",
	.summary = "give a version another name",
	.usage = "[options] NAME[:TAG] NEWTAG",
	.description =
		"NAME:NEWTAG stands from now on for what NAME or NAME:TAG stands for. A tag that\n"
		"is there already is moved.",
	.examples = "  bunker template tag web:v3 prod",
	.options = plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 2,
	.max_operands = 2,
	.work = template_work_tag,
};

static int work_untag(struct job *j, struct bunker_error *e)
{
	char *tag = split_tag(j->rest[0]);
	return bunker_template_untag(j->bunker, j->rest[0], tag ? tag : "latest", e);
}

const struct command cmd_template_untag = {
	.name = "template untag",
	.summary = "take a tag away",
	.usage = "[options] NAME[:TAG]",
	.description = "A version that has no tag left goes when no sandbox stands on it.",
	.examples = "  bunker template untag web:v1",
	.options = plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.work = work_untag,
};

static int template_work_rm(struct job *j, struct bunker_error *e)
{
	int r = 0;
	for (char **name = j->rest; r == 0 && *name; name++)
		r = bunker_template_delete(j->bunker, *name, e);
	return r;
}

const struct command cmd_template_rm = {
	.name = "template rm",
	.summary = "delete them",
	.usage = "[options] NAME...",
	.description =
		"Deletes templates with all their versions. One that a sandbox stands on is kept,\n"
		"and that is an error.",
	.examples = "  bunker template rm web",
	.options = plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = OPERANDS_MANY,
	.work = template_work_rm,
};

/* ---- log ---- */

static int run_log(struct arguments *args)
{
	struct bunker *b;
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &b) < 0)
		return STATUS_FAILED;
	int status = cli_template_follow(args, b, args->operands[0]);
	bunker_close(b);
	return status;
}

const struct command cmd_template_log = {
	.name = "template log",
	.summary = "what happened in a build, until its end",
	.usage = "[options] BUILD",
	.description =
		"Prints the log of a build on stderr, from its beginning to its end, as it comes.\n"
		"The ids of builds are in `bunker template info`.",
	.examples = "  bunker template log 2r2yb2149z7awqdo0kub",
	.options = plain_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.run = run_log,
};
