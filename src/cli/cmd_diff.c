#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/diff_filter.h"
#include "cli/disks.h"
#include "cli/files.h"
#include "cli/table.h"
#include "cli/transfer.h"
#include "client/failure.h"

struct diff_work {
	struct job *job;
	struct diff_paths paths;
	struct diff_counts counts;
	cJSON *changes; /* those that are wanted, for --json */
};

/* ---- compared with what ---- */

typedef int compare_fn(
	struct diff_work *w, const struct bunker_diff_options *options, struct bunker_error *e);

static bool is_missing(const struct bunker_error *e, const char *field)
{
	return strcmp(e->code, "not_found") == 0 && strcmp(e->field, field) == 0;
}

/* A name is a checkpoint's before it is a snapshot's. */
static int diff_compare(
	struct diff_work *w, const char *against, compare_fn *fn, struct bunker_error *e)
{
	struct bunker_diff_options options = {0};
	if (!against || strcmp(against, "template") == 0)
		return fn(w, &options, e);
	options.checkpoint = against;
	int r = fn(w, &options, e);
	if (r == 0 || !is_missing(e, "checkpoint"))
		return r;
	options = (struct bunker_diff_options){.snapshot = against};
	r = fn(w, &options, e);
	if (r < 0 && is_missing(e, "snapshot"))
		client_fail(e, "not_found", "there is no checkpoint or snapshot \"%s\"", against);
	return r;
}

/* ---- a list ---- */

static void diff_count(struct diff_counts *c, const struct bunker_change *change)
{
	if (strcmp(change->change, "added") == 0)
		c->added++;
	else if (strcmp(change->change, "deleted") == 0)
		c->deleted++;
	else
		c->changed++;
}

/* "120 B -> 140 B, 0644 -> 0755" */
static void print_details(const struct bunker_change *c)
{
	char size[SIZE_TEXT], old[SIZE_TEXT];
	bool is_file = c->size >= 0 && strcmp(c->type, "file") == 0;
	if (is_file)
		cli_table_format_size((double)c->size, size);
	if (c->old_type[0])
		printf("  was a %s", c->old_type);
	else if (is_file && c->old_size >= 0 && c->old_size != c->size) {
		cli_table_format_size((double)c->old_size, old);
		printf("  %s -> %s", old, size);
	} else if (is_file) {
		printf("  %s", size);
	}
	if (c->mode[0])
		printf("  %s -> %s", c->old_mode, c->mode);
}

static int print_change(void *arg, const struct bunker_change *c)
{
	struct diff_work *w = arg;
	bool deleted = strcmp(c->change, "deleted") == 0;
	if (!cli_diff_paths_match(&w->paths, c->path, deleted))
		return 0;
	diff_count(&w->counts, c);
	printf("%c ", deleted ? 'D' : strcmp(c->change, "added") == 0 ? 'A' : 'M');
	cli_files_print_text(c->path);
	if (strcmp(c->type, "directory") == 0)
		putchar('/');
	if (!deleted)
		print_details(c);
	putchar('\n');
	return ferror(stdout) ? -1 : 0;
}

static int diff_list(
	struct diff_work *w, const struct bunker_diff_options *options, struct bunker_error *e)
{
	struct job *j = w->job;
	return bunker_diff(
		j->bunker, j->sandbox, options, print_change, w, &w->counts.truncated, e);
}

void cli_diff_format_counts(const struct diff_counts *c, char out[DIFF_COUNTS_TEXT])
{
	snprintf(out, DIFF_COUNTS_TEXT, "%llu added, %llu changed, %llu deleted",
		(unsigned long long)c->added, (unsigned long long)c->changed,
		(unsigned long long)c->deleted);
}

static void print_end(const struct diff_counts *c)
{
	char counts[DIFF_COUNTS_TEXT];
	if (c->truncated)
		cli_report("some directories are too deep: what is in them was not looked at");
	if (!isatty(STDOUT_FILENO))
		return;
	cli_diff_format_counts(c, counts);
	puts(c->added + c->changed + c->deleted ? counts : "nothing was changed");
}

static int work_list(struct diff_work *w, struct bunker_error *e)
{
	int r = diff_compare(w, w->job->args->disk.against, diff_list, e);
	if (r == 0)
		print_end(&w->counts);
	return r;
}

static int add_to_counts(void *arg, const struct bunker_change *change)
{
	diff_count(arg, change);
	return 0;
}

int cli_diff_count(
	struct job *j, const char *checkpoint, struct diff_counts *ret, struct bunker_error *e)
{
	const struct bunker_diff_options options = {.checkpoint = checkpoint};
	*ret = (struct diff_counts){0};
	return bunker_diff(j->bunker, j->sandbox, &options, add_to_counts, ret, &ret->truncated, e);
}

/* ---- JSON: as it comes, or made anew of what is wanted ---- */

static int write_stdout(void *arg, const void *data, size_t size)
{
	(void)arg;
	return fwrite(data, 1, size, stdout) == size ? 0 : -1;
}

static int pass_json(
	struct diff_work *w, const struct bunker_diff_options *options, struct bunker_error *e)
{
	struct job *j = w->job;
	return bunker_diff_bytes(
		j->bunker, j->sandbox, options, BUNKER_DIFF_JSON, write_stdout, NULL, e);
}

static int keep_change(void *arg, const struct bunker_change *c)
{
	struct diff_work *w = arg;
	if (!cli_diff_paths_match(&w->paths, c->path, strcmp(c->change, "deleted") == 0))
		return 0;
	autofree char *json = bunker_json_text(c->json);
	diff_count(&w->counts, c);
	return cJSON_AddItemToArray(w->changes, cJSON_CreateRaw(json ? json : "null")) ? 0 : -1;
}

static int filter_json(
	struct diff_work *w, const struct bunker_diff_options *options, struct bunker_error *e)
{
	struct job *j = w->job;
	return bunker_diff(j->bunker, j->sandbox, options, keep_change, w, &w->counts.truncated, e);
}

static int work_json(struct diff_work *w, struct bunker_error *e)
{
	const char *against = w->job->args->disk.against;
	if (!w->paths.paths[0]) {
		int r = diff_compare(w, against, pass_json, e);
		if (r == 0)
			putchar('\n');
		return r;
	}
	cJSON *answer = cJSON_CreateObject();
	w->changes = cJSON_AddArrayToObject(answer, "changes");
	int r = diff_compare(w, against, filter_json, e);
	cJSON_AddNumberToObject(answer, "added", (double)w->counts.added);
	cJSON_AddNumberToObject(answer, "changed", (double)w->counts.changed);
	cJSON_AddNumberToObject(answer, "deleted", (double)w->counts.deleted);
	cJSON_AddBoolToObject(answer, "truncated", w->counts.truncated);
	autofree char *text = r == 0 ? cJSON_PrintUnformatted(answer) : NULL;
	if (text)
		puts(text);
	cJSON_Delete(answer);
	return r;
}

/* ---- a text ---- */

static int diff_text(
	struct diff_work *w, const struct bunker_diff_options *options, struct bunker_error *e)
{
	const char *no_color = getenv("NO_COLOR");
	bool for_people = isatty(STDOUT_FILENO);
	struct diff_text t = {.paths = &w->paths,
		.for_people = for_people,
		.colored = for_people && !(no_color && *no_color),
		.write = write_stdout};
	int r = bunker_diff_bytes(w->job->bunker, w->job->sandbox, options, BUNKER_DIFF_TEXT,
		cli_diff_text_take, &t, e);
	cli_diff_text_finish(&t);
	/* The reader of our output has left, or the error is printed at the end. */
	return r < 0 && strcmp(e->code, BUNKER_STOPPED) == 0 ? JOB_SAID : r;
}

/* ---- a tar ---- */

static int diff_tar(
	struct diff_work *w, const struct bunker_diff_options *options, struct bunker_error *e)
{
	struct transfer transfer;
	const struct arguments *args = w->job->args;
	struct diff_tar t = {.paths = &w->paths, .write = cli_transfer_write, .arg = &transfer};
	if (cli_transfer_receive(&transfer, args->disk.tar, args->quiet) < 0)
		return JOB_SAID;
	int r = bunker_diff_bytes(w->job->bunker, w->job->sandbox, options, BUNKER_DIFF_TAR,
		cli_diff_tar_take, &t, e);
	if (cli_diff_tar_finish(&t, r == 0) != 0)
		r = client_fail(e, BUNKER_STOPPED, "stopped");
	return cli_transfer_end(&transfer, r, e);
}

/* ---- the command ---- */

static bool has_relative(char **paths)
{
	for (; *paths; paths++)
		if (**paths != '/')
			return true;
	return false;
}

/* Only the sandbox knows where it begins. */
static int init_paths(struct job *j, struct diff_paths *paths, struct bunker_error *e)
{
	struct bunker_entry workdir = {0};
	if (has_relative(j->rest) &&
		bunker_file_stat(j->bunker, j->sandbox, ".", true, NULL, &workdir, e) < 0)
		return -1;
	int r = cli_diff_paths_init(paths, j->rest, workdir.path ? workdir.path : "/");
	bunker_entry_finish(&workdir);
	return r < 0 ? JOB_SAID : 0;
}

static int work_diff(struct job *j, struct bunker_error *e)
{
	struct diff_work w = {.job = j};
	const struct arguments *args = j->args;
	if (args->disk.text + (args->disk.tar != NULL) + args->json > 1) {
		cli_report("only one of --text, --tar and --json can be given");
		return JOB_MISUSED;
	}
	int r = init_paths(j, &w.paths, e);
	if (r < 0)
		return r;
	if (args->disk.text)
		r = diff_compare(&w, args->disk.against, diff_text, e);
	else if (args->disk.tar)
		r = diff_compare(&w, args->disk.against, diff_tar, e);
	else
		r = args->json ? work_json(&w, e) : work_list(&w, e);
	cli_diff_paths_finish(&w.paths);
	return r;
}

static const struct option own_options[] = {
	{'a', "against", "WHAT", OPTION_STRING, offsetof(struct arguments, disk.against),
		"template (what it began with), a checkpoint or a snapshot"},
	{'p', "text", NULL, OPTION_FLAG, offsetof(struct arguments, disk.text),
		"a unified diff of text files, as git applies it"},
	{0, "tar", "FILE", OPTION_STRING, offsetof(struct arguments, disk.tar),
		"an archive of what is new; - is stdout"},
	{'q', "quiet", NULL, OPTION_FLAG, offsetof(struct arguments, quiet), "no progress bar"},
	{0},
};

static const struct option *const diff_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_diff = {
	.name = "diff",
	.summary = "show what a sandbox has changed",
	.usage = "[options] SANDBOX [PATH...]",
	.description =
		"Lists the files that were added (A), changed (M) or deleted (D), with their sizes, in no\n"
		"particular order: compared with what the sandbox began with, or with --against a\n"
		"checkpoint of it or a snapshot. With PATHs only what lies there or below; relative ones\n"
		"begin in the sandbox's working directory. It goes on running meanwhile.",
	.examples = "  bunker diff work\n"
		    "  bunker diff --text work src > changes.diff\n"
		    "  bunker diff --against before-upgrade work /etc\n"
		    "  bunker diff --tar changes.tar work",
	.options = diff_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = OPERANDS_MANY,
	.in_sandbox = true,
	.work = work_diff,
};
