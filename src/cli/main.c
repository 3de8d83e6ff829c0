/* bunker: one program, many commands. Nothing but their table and the way into it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands.h"

const struct command *const cli_commands[] = {&cmd_run, &cmd_create, &cmd_exec, &cmd_shell, &cmd_ps,
	&cmd_logs, &cmd_attach, &cmd_kill, &cmd_jobs, &cmd_vars, &cmd_cp, &cmd_files, &cmd_ls,
	&cmd_info, &cmd_pause, &cmd_resume, &cmd_extend, &cmd_events, &cmd_usage, &cmd_net,
	&cmd_allow, &cmd_deny, &cmd_rm, &cmd_diff, &cmd_commit, &cmd_discard, &cmd_checkpoint,
	&cmd_snapshot, &cmd_fork, &cmd_volume, &cmd_du, &cmd_port, &cmd_key, &cmd_secret,
	&cmd_export, &cmd_import, &cmd_template, &cmd_templates, &cmd_env, &cmd_serve, &cmd_doctor,
	&cmd_version, &cmd_help, NULL};

/* Words that new users try first. */
static const struct {
	const char *option;
	const struct command *command;
} aliases[] = {
	{"--help", &cmd_help},
	{"-h", &cmd_help},
	{"--version", &cmd_version},
	{"-V", &cmd_version},
};

static const struct command *cli_main_find(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
		if (strcmp(aliases[i].option, word) == 0)
			return aliases[i].command;
	return cli_command_find(word);
}

int main(int argc, char **argv)
{
	/* Not a command: how the server starts processes of its own. */
	if (argc > 0 && strcmp(argv[0], "bunker-egress") == 0)
		return egress_main(argc, argv);
	if (argc > 0 && strcmp(argv[0], "bunker-broker") == 0)
		return broker_main(argc, argv);
	if (argc < 2) {
		cli_help_print_overview();
		return STATUS_USAGE;
	}
	const struct command *command = cli_main_find(argv[1]);
	if (!command)
		return cli_command_refuse(argv[1]);
	int status = cli_command_run(command, argc - 1, argv + 1);
	if (fflush(stdout) != 0 && errno != EPIPE) {
		cli_report("cannot write the output: %s", strerror(errno));
		return status ? status : STATUS_FAILED;
	}
	return status;
}
