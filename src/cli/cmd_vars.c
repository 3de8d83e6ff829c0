#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/target.h"

struct change {
	struct bunker_pair *pairs;
	size_t count;
	struct bunker_env env;
};

static int vars_apply(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	struct change *c = arg;
	if (c->count == 0)
		return bunker_env_get(b, id, &c->env, e);
	return bunker_env_change(b, id, c->pairs, c->count, &c->env, e);
}

/* NAME=VALUE operands, then those to take out. Splits in argv itself. */
static int vars_collect(const struct arguments *args, struct change *c)
{
	c->pairs = calloc((size_t)args->operand_count + args->unset.count, sizeof *c->pairs);
	if (!c->pairs)
		return cli_report("out of memory");
	for (int i = 1; i < args->operand_count; i++) {
		char *equals = strchr(args->operands[i], '=');
		if (!equals)
			return cli_report(
				"\"%s\" is not of the form NAME=VALUE", args->operands[i]);
		*equals = '\0';
		c->pairs[c->count++] = (struct bunker_pair){args->operands[i], equals + 1};
	}
	for (size_t i = 0; i < args->unset.count; i++)
		c->pairs[c->count++] = (struct bunker_pair){args->unset.items[i], NULL};
	return 0;
}

static void print_env(const struct arguments *args, const struct bunker_env *env)
{
	autofree char *json = args->json ? bunker_json_text(env->json) : NULL;
	if (json)
		puts(json);
	for (size_t i = 0; !json && i < env->count; i++)
		printf("%s=%s\n", env->items[i].name, env->items[i].value);
}

static int run_vars(struct arguments *args)
{
	struct bunker *b;
	struct bunker_error e;
	struct change c = {0};
	int status = STATUS_USAGE;
	if (vars_collect(args, &c) == 0) {
		status = STATUS_FAILED;
		if (cli_session_open(args, SESSION_NEEDS_SERVER, &b) == 0) {
			if (cli_target_apply(b, args->operands[0], vars_apply, &c, &e) < 0)
				cli_session_report(args, &e);
			else
				status = 0;
			bunker_close(b);
		}
	}
	if (status == 0) {
		print_env(args, &c.env);
		bunker_env_finish(&c.env);
	}
	free(c.pairs);
	return status;
}

static const struct option own_options[] = {
	{0, "unset", "NAME", OPTION_LIST, offsetof(struct arguments, unset),
		"take this variable out; repeatable"},
	{0},
};

static const struct option *const vars_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_vars = {
	.name = "vars",
	.summary = "the environment variables of a sandbox",
	.usage = "[options] SANDBOX [NAME=VALUE...]",
	.description =
		"Sets and unsets variables of a sandbox, and prints all of them. Everything that is\n"
		"started afterwards begins with them; what runs keeps what it has.",
	.examples = "  bunker vars work\n"
		    "  bunker vars work DEBUG=1 --unset LANG",
	.options = vars_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = OPERANDS_MANY,
	.run = run_vars,
};
