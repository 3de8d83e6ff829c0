#include <stdio.h>

#include "cli/commands.h"

static int run_version(struct arguments *args)
{
	puts(args->json ? "{\"version\":\"" BUNKER_VERSION "\"}" : "bunker " BUNKER_VERSION);
	return 0;
}

static const struct option *const version_options[] = {cli_common_options, NULL};

const struct command cmd_version = {
	.name = "version",
	.summary = "print the version",
	.usage = "[options]",
	.description = "Prints the version of this program.",
	.examples = "  bunker version",
	.options = version_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.run = run_version,
};
