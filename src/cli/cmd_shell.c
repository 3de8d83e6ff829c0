#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/terminal.h"

/*
 * The login shell of the sandbox's user, whichever it is there. A terminal that the sandbox's
 * terminfo does not know, as those of new terminal programs, is taken for one that it does.
 */
static const char *const login_shell[] = {"/bin/sh", "-c",
	"for d in /etc/terminfo /lib/terminfo /usr/share/terminfo; do\n"
	"	[ -d \"$d\" ] && has=1\n"
	"	[ -e \"$d/${TERM%\"${TERM#?}\"}/$TERM\" ] && has= && break\n"
	"done\n"
	"[ -z \"$has\" ] || TERM=xterm-256color\n"
	"export TERM\n"
	"exec \"${SHELL:-/bin/sh}\" -l",
	NULL};

/* With our TERM, unless the user gives one. */
static int set_environment(struct arguments *args, struct bunker_exec_options *command)
{
	static const char name[] = "TERM";
	const char *term = getenv(name);
	struct bunker_pair *env = calloc(args->env.count + 1, sizeof *env);
	if (!env)
		return cli_report("out of memory");
	if (term && *term)
		env[command->env_count++] = (struct bunker_pair){name, term};
	for (size_t i = 0; i < args->env.count; i++)
		env[command->env_count++] = args->env_pairs[i];
	command->env = env;
	return 0;
}

static int refuse_setting(const struct arguments *args, const char *option)
{
	cli_report("--%s is for a new sandbox, and %s is there already; leave out one of the two",
		option, args->operands[0]);
	return STATUS_USAGE;
}

static const char *option_of_setting(const char *name)
{
	struct option o;
	for (size_t at = 0; cli_options_next(cmd_shell.options, &at, &o);)
		if (o.field && strcmp(o.field->name, name) == 0)
			return o.name;
	return name;
}

/* Of a sandbox that is there: who the shell is, and where. Returns 0 or the exit status. */
static int take_settings(const struct arguments *args, struct bunker_exec_options *command)
{
	const struct {
		const char *option;
		bool given;
	} others[] = {{"keep", args->keep}, {"snapshot", args->create.snapshot},
		{"volume", args->volumes.count}, {"file", args->files.count},
		{"metadata", args->metadata.count}, {"dependency", args->dependencies.count},
		{"package", args->packages.count}};
	for (size_t i = args->settings.count; i-- > 0;) {
		const struct bunker_pair *s = &args->settings.items[i];
		if (strcmp(s->name, "user") == 0)
			command->user = s->value;
		else if (strcmp(s->name, "workdir") == 0)
			command->cwd = s->value;
		else
			return refuse_setting(args, option_of_setting(s->name));
	}
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (others[i].given)
			return refuse_setting(args, others[i].option);
	return 0;
}

static int run_shell(struct arguments *args)
{
	struct bunker *b;
	struct bunker_exec_options command = {.argv = login_shell};
	int status = args->operand_count ? take_settings(args, &command) : 0;
	if (status)
		return status;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		cli_report("a shell needs a terminal; without one, use: bunker exec -i");
		return STATUS_USAGE;
	}
	if (cli_session_open(args, SESSION_STARTS_SERVER, &b) < 0)
		return STATUS_NOT_EXECUTED;
	status = set_environment(args, &command) < 0
			 ? STATUS_NOT_EXECUTED
			 : cli_terminal_run(args, b, args->operands[0], &command);
	free((void *)command.env);
	bunker_close(b);
	return status;
}

static const struct option own_options[] = {
	{'k', "keep", NULL, OPTION_FLAG, offsetof(struct arguments, keep),
		"do not destroy a sandbox that was made for this shell"},
	{0},
};

static const struct option *const shell_options[] = {
	own_options, cli_sandbox_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_shell = {
	.name = "shell",
	.summary = "a terminal in a sandbox",
	.usage = "[options] [SANDBOX]",
	.description =
		"Opens the login shell of the sandbox's user on your terminal. Without SANDBOX one is\n"
		"made by the options, and destroyed when the shell ends. Of a sandbox that is there -u,\n"
		"-w and -e say who the shell is, where it starts and what its environment has; the other\n"
		"options are for a new one, and are refused.\n"
		"\n"
		"At the beginning of a line, ~. detaches: the shell goes on, and bunker attach comes\n"
		"back to it. ~~ is a ~. The shell also survives a lost connection and a restart of the\n"
		"server. The exit status is the shell's.",
	.examples = "  bunker shell\n"
		    "  bunker shell work\n"
		    "  bunker shell -u root -w /srv -e DEBUG=1 work\n"
		    "  bunker shell --memory 2Gi -u root",
	.options = shell_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.max_operands = 1,
	.run = run_shell,
};
