#include <stdio.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/suggest.h"

static int run_create(struct arguments *args)
{
	struct bunker *b;
	struct bunker_sandbox sandbox;
	struct bunker_error e;
	if (cli_arguments_load_files(args) < 0 ||
		cli_session_open(args, SESSION_STARTS_SERVER, &b) < 0)
		return STATUS_FAILED;
	int r = bunker_create(b, &args->create, &sandbox, &e);
	if (r < 0)
		cli_suggest_template(b, args, &e);
	bunker_close(b);
	if (r < 0) {
		cli_session_report(args, &e);
		return STATUS_FAILED;
	}
	autofree char *json = args->json ? bunker_json_text(sandbox.json) : NULL;
	puts(json ? json : sandbox.id);
	bunker_sandbox_finish(&sandbox);
	return 0;
}

static const struct option *const create_options[] = {
	cli_sandbox_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_create = {
	.name = "create",
	.summary = "make a sandbox that stays, and print its id",
	.usage = "[options]",
	.description =
		"Makes a sandbox and prints its id, alone, on stdout. It stays until `bunker rm` or\n"
		"its idle timeout. If there is no server on this machine yet, root gets one in the\n"
		"background.",
	.examples = "  bunker create --name work\n"
		    "  id=$(bunker create --memory 2Gi --cpu 2 --idle-timeout 1h)\n"
		    "  bunker create -m team=red -m ticket=42 -f ./setup.sh:/home/user/setup.sh",
	.options = create_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.run = run_create,
};
