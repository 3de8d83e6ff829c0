/*
 * The commands: one file each, with one const entry. main.c holds the table of them.
 *
 * An entry's run gets the command line parsed and checked against the entry; it returns the exit
 * status. serve and doctor parse their own.
 */
#pragma once

#include "cli/arguments.h"
#include "cli/report.h"

struct job;
/* 0, or -1 with *e filled, or JOB_SAID. */
typedef int job_fn(struct job *j, struct bunker_error *e);

#define OPERANDS_MANY 0x7fffffff

struct command {
	const char *name;
	const char *summary;     /* one line, for the list of commands */
	const char *usage;       /* what comes after "bunker NAME " */
	const char *description; /* the paragraphs of the help */
	const char *examples;
	const struct option *const *options; /* closed by NULL */
	int operands_before_command;         /* see options.h */
	int min_operands;
	int max_operands;
	int (*run)(struct arguments *args);
	job_fn *work;                          /* instead of run, with a server found; see job.h */
	bool in_sandbox;                       /* and a sandbox, by the first operand */
	int (*forward)(int argc, char **argv); /* instead of all the above but name and summary */
	/*
	 * The subcommands of a command with two words, closed by NULL. Such a command has a name,
	 * summary, usage and description.
	 */
	const struct command *const *parts;
};

extern const struct command cmd_run;
extern const struct command cmd_create;
extern const struct command cmd_exec;
extern const struct command cmd_shell;
extern const struct command cmd_ps;
extern const struct command cmd_logs;
extern const struct command cmd_attach;
extern const struct command cmd_kill;
extern const struct command cmd_net;
extern const struct command cmd_jobs;
extern const struct command cmd_vars;
extern const struct command cmd_cp;
extern const struct command cmd_files;
extern const struct command cmd_ls;
extern const struct command cmd_info;
extern const struct command cmd_port;
extern const struct command cmd_pause;
extern const struct command cmd_resume;
extern const struct command cmd_extend;
extern const struct command cmd_allow;
extern const struct command cmd_deny;
extern const struct command cmd_events;
extern const struct command cmd_usage;
extern const struct command cmd_rm;
extern const struct command cmd_diff;
extern const struct command cmd_commit;
extern const struct command cmd_discard;
extern const struct command cmd_checkpoint;
extern const struct command cmd_snapshot;
extern const struct command cmd_fork;
extern const struct command cmd_volume;
extern const struct command cmd_key;
extern const struct command cmd_secret;
extern const struct command cmd_du;
extern const struct command cmd_export;
extern const struct command cmd_import;
extern const struct command cmd_template;
extern const struct command cmd_templates;
extern const struct command cmd_env;
extern const struct command cmd_doctor;
extern const struct command cmd_serve;
extern const struct command cmd_version;
extern const struct command cmd_help;

/* In main.c; closed by NULL. */
extern const struct command *const cli_commands[];
const struct command *cli_command_find(const char *name);
/* Says that there is no such command, and which may have been meant. Returns the exit status. */
int cli_command_refuse(const char *word);
/* argv[0] is the command's name. Returns the exit status. */
int cli_command_run(const struct command *command, int argc, char **argv);

/* In cmd_templates.c: `templates` and `template ls` are the same. */
int cli_templates_list(struct arguments *args);

/* In help.c. */
void cli_help_print_overview(void);
void cli_help_print_command(const struct command *command);
void cli_help_print_parts(const struct command *command);
/* A part's own word. */
const char *cli_command_word(const struct command *part);

/* Implemented by src/server, which main.c is linked with. argv[0] is the command's name. */
int serve_main(int argc, char **argv);
int egress_main(int argc, char **argv);
int broker_main(int argc, char **argv);
int doctor_main(int argc, char **argv);
