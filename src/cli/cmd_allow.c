/* allow and deny: single rules of what a sandbox may reach. */
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/target.h"
#include "client/answer.h"

struct rule_change {
	const struct arguments *args;
	bool allows;
	struct bunker_json *network;
};

static int allow_change(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	struct rule_change *c = arg;
	return bunker_change_network(b, id, c->allows, (const char *const *)c->args->operands + 1,
		(size_t)c->args->operand_count - 1, &c->network, e);
}

static void allow_print(const struct rule_change *c)
{
	static const char *const lists[] = {"allow", "deny"};
	char number[32];
	const char *mode = client_answer_text(c->network, "mode", number);
	autofree char *json = c->args->json ? bunker_json_text(c->network) : NULL;
	if (json) {
		puts(json);
		return;
	}
	cli_table_print_field("network", mode ? mode : "");
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		autobuf text = {0};
		client_answer_list(c->network, lists[i], &text);
		if (!text.failed && text.data[0])
			cli_table_print_field(lists[i], text.data);
	}
}

static int run_change(struct arguments *args, bool allows)
{
	struct rule_change c = {.args = args, .allows = allows};
	struct bunker *b;
	struct bunker_error e;
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &b) < 0)
		return STATUS_FAILED;
	int r = cli_target_apply(b, args->operands[0], allow_change, &c, &e);
	bunker_close(b);
	if (r < 0) {
		cli_session_report(args, &e);
		return STATUS_FAILED;
	}
	allow_print(&c);
	bunker_json_free(c.network);
	return 0;
}

static int run_allow(struct arguments *args)
{
	return run_change(args, true);
}

static int run_deny(struct arguments *args)
{
	return run_change(args, false);
}

static const struct option *const allow_options[] = {
	cli_connection_options, cli_common_options, NULL};

const struct command cmd_allow = {
	.name = "allow",
	.summary = "let a sandbox reach names and addresses",
	.usage = "[options] SANDBOX RULE...",
	.description =
		"Adds rules to what a sandbox may reach: names, *.names, addresses, ranges, with :port\n"
		"or without, and presets such as preset:npm. One that reaches nothing then reaches\n"
		"these. In force, also for open connections, when the command returns.",
	.examples = "  bunker allow work preset:npm api.example.org:443",
	.options = allow_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 2,
	.max_operands = 100,
	.run = run_allow,
};

const struct command cmd_deny = {
	.name = "deny",
	.summary = "keep a sandbox from names and addresses",
	.usage = "[options] SANDBOX RULE...",
	.description =
		"Takes rules out of what a sandbox with an allow list may reach; one that reaches the\n"
		"internet no longer reaches these. Connections that are open and no longer allowed are\n"
		"reset when the command returns. What was refused is shown by bunker events.",
	.examples = "  bunker deny work api.example.org:443",
	.options = allow_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 2,
	.max_operands = 100,
	.run = run_deny,
};
