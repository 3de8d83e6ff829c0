#include <stdio.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/target.h"

static void usage_print_text(const char *title, double amount, const char *unit)
{
	char text[64];
	snprintf(text, sizeof text, "%.1f %s", amount, unit);
	cli_table_print_field(title, text);
}

static void print_usage(const struct bunker_usage *u)
{
	char pids[24];
	usage_print_text("cpu time", (double)u->cpu_ms / 1000, "s");
	usage_print_text("memory over time", (double)u->memory_byte_seconds / (1 << 20), "MiB s");
	usage_print_text("network", (double)(u->network_in + u->network_out) / (1 << 20), "MiB");
	if (*u->ended_at) {
		cli_table_print_field("ended", u->ended_at);
		return;
	}
	usage_print_text("memory", (double)u->memory / (1 << 20), "MiB");
	usage_print_text("disk", (double)u->disk / (1 << 20), "MiB");
	snprintf(pids, sizeof pids, "%lld", (long long)u->pids);
	cli_table_print_field("processes", pids);
}

static int usage_measure(struct bunker *b, const char *id, void *usage, struct bunker_error *e)
{
	return bunker_usage(b, id, usage, e);
}

static int run_usage(struct arguments *args)
{
	struct bunker *b;
	struct bunker_usage usage;
	struct bunker_error e;
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &b) < 0)
		return STATUS_FAILED;
	int r = cli_target_apply(b, args->operands[0], usage_measure, &usage, &e);
	bunker_close(b);
	if (r < 0) {
		cli_session_report(args, &e);
		return STATUS_FAILED;
	}
	autofree char *json = args->json ? bunker_json_text(usage.json) : NULL;
	if (json)
		puts(json);
	else
		print_usage(&usage);
	bunker_usage_finish(&usage);
	return 0;
}

static const struct option *const usage_options[] = {
	cli_connection_options, cli_common_options, NULL};

const struct command cmd_usage = {
	.name = "usage",
	.summary = "show what a sandbox has used",
	.usage = "[options] SANDBOX",
	.description =
		"Shows the cpu time and the memory over time of a sandbox since its creation, and what it\n"
		"uses now. By its id also of one that has ended.",
	.examples = "  bunker usage work\n"
		    "  bunker usage --json work",
	.options = usage_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.run = run_usage,
};
