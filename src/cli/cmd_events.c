#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/target.h"

static int events_print_event(void *arg, const struct bunker_event *event)
{
	const struct arguments *args = arg;
	if (args->json) {
		autofree char *json = bunker_json_text(event->json);
		puts(json ? json : "");
	} else {
		printf("%s  %-12s %-10s", event->created_at, event->type, event->cause);
		for (size_t i = 0; i < event->detail_count; i++)
			printf(" %s=%s", event->details[i].name, event->details[i].value);
		putchar('\n');
	}
	return fflush(stdout) != 0;
}

static int read_events(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	struct arguments *args = arg;
	return bunker_events(b, id, 0, args->follow, events_print_event, args, e);
}

static int run_events(struct arguments *args)
{
	struct bunker *b;
	struct bunker_error e;
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &b) < 0)
		return STATUS_FAILED;
	int r = cli_target_apply(b, args->operands[0], read_events, args, &e);
	bunker_close(b);
	if (r == 0 || strcmp(e.code, BUNKER_STOPPED) == 0)
		return 0;
	cli_session_report(args, &e);
	return STATUS_FAILED;
}

static const struct option own_options[] = {
	{'f', "follow", NULL, OPTION_FLAG, offsetof(struct arguments, follow),
		"go on with what happens, until the sandbox has ended"},
	{0},
};

static const struct option *const events_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_events = {
	.name = "events",
	.summary = "show what happened to a sandbox, and why",
	.usage = "[options] SANDBOX",
	.description =
		"Shows every step of a sandbox's life with its cause, oldest first: a line each, with\n"
		"--json a JSON object each. By its id also of one that has ended, for as long as the\n"
		"server keeps its record.",
	.examples = "  bunker events work\n"
		    "  bunker events --follow --json work",
	.options = events_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.run = run_events,
};
