#include <stdio.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/target.h"

static const struct {
	const char *title;
	size_t offset; /* of a const char * in struct bunker_sandbox; "" is not shown */
} text_rows[] = {
	{"id", offsetof(struct bunker_sandbox, id)},
	{"name", offsetof(struct bunker_sandbox, name)},
	{"description", offsetof(struct bunker_sandbox, description)},
	{"status", offsetof(struct bunker_sandbox, status)},
	{"reason", offsetof(struct bunker_sandbox, status_reason)},
	{"template", offsetof(struct bunker_sandbox, template_name)},
	{"isolation", offsetof(struct bunker_sandbox, isolation)},
	{"user", offsetof(struct bunker_sandbox, user)},
	{"workdir", offsetof(struct bunker_sandbox, workdir)},
	{"project", offsetof(struct bunker_sandbox, project)},
	{"created", offsetof(struct bunker_sandbox, created_at)},
	{"last active", offsetof(struct bunker_sandbox, last_active_at)},
	{"expires", offsetof(struct bunker_sandbox, expires_at)},
	{"terminates", offsetof(struct bunker_sandbox, terminates_at)},
	{"paused", offsetof(struct bunker_sandbox, paused_at)},
	{"ended", offsetof(struct bunker_sandbox, ended_at)},
	{"ended by", offsetof(struct bunker_sandbox, ended_by)},
	{"boot id", offsetof(struct bunker_sandbox, boot_id)},
	{"memory", offsetof(struct bunker_sandbox, memory)},
	{"cpu", offsetof(struct bunker_sandbox, cpu)},
	{"disk", offsetof(struct bunker_sandbox, disk)},
	{"idle timeout", offsetof(struct bunker_sandbox, idle_timeout)},
	{"on idle", offsetof(struct bunker_sandbox, on_idle)},
	{"execution timeout", offsetof(struct bunker_sandbox, execution_timeout)},
	{"paused timeout", offsetof(struct bunker_sandbox, paused_timeout)},
	{"lease", offsetof(struct bunker_sandbox, lease)},
	{"lease ends", offsetof(struct bunker_sandbox, lease_ends_at)},
	{"on lease", offsetof(struct bunker_sandbox, on_lease)},
};

static const struct {
	const char *title;
	size_t offset; /* of an int64_t */
} number_rows[] = {
	{"pids", offsetof(struct bunker_sandbox, pids)},
	{"open files", offsetof(struct bunker_sandbox, open_files)},
	{"executions", offsetof(struct bunker_sandbox, executions)},
};

static void print_pairs(const char *title, const struct bunker_pair *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		autobuf text = {0};
		buf_printf(&text, "%s=%s", pairs[i].name, pairs[i].value);
		autofree char *line = buf_take_str(&text);
		cli_table_print_field(title, line);
	}
}

static void print_sandbox(const struct bunker_sandbox *s)
{
	const char *base = (const char *)s;
	char number[32];
	for (size_t i = 0; i < ARRAY_LEN(text_rows); i++) {
		const char *text = *(const char *const *)(base + text_rows[i].offset);
		if (*text)
			cli_table_print_field(text_rows[i].title, text);
	}
	for (size_t i = 0; i < ARRAY_LEN(number_rows); i++) {
		int64_t value = *(const int64_t *)(base + number_rows[i].offset);
		snprintf(number, sizeof number, "%lld", (long long)value);
		cli_table_print_field(number_rows[i].title, number);
	}
	snprintf(number, sizeof number, "%.1f ms", s->startup_ms);
	cli_table_print_field("startup", number);
	print_pairs("env", s->env, s->env_count);
	print_pairs("metadata", s->metadata, s->metadata_count);
}

static int get(struct bunker *b, const char *id, void *sandbox, struct bunker_error *e)
{
	return bunker_get(b, id, sandbox, e);
}

static int run_info(struct arguments *args)
{
	struct bunker *b;
	struct bunker_sandbox sandbox;
	struct bunker_error e;
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &b) < 0)
		return STATUS_FAILED;
	int r = cli_target_apply(b, args->operands[0], get, &sandbox, &e);
	bunker_close(b);
	if (r < 0) {
		cli_session_report(args, &e);
		return STATUS_FAILED;
	}
	autofree char *json = args->json ? bunker_json_text(sandbox.json) : NULL;
	if (json)
		puts(json);
	else
		print_sandbox(&sandbox);
	bunker_sandbox_finish(&sandbox);
	return 0;
}

static const struct option *const info_options[] = {
	cli_connection_options, cli_common_options, NULL};

const struct command cmd_info = {
	.name = "info",
	.summary = "show everything about one sandbox",
	.usage = "[options] SANDBOX",
	.description =
		"Shows the state, limits, times and labels of a sandbox, given by id or name.",
	.examples = "  bunker info work\n"
		    "  bunker info --json work",
	.options = info_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.run = run_info,
};
