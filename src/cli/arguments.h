/*
 * The parsed command line of every command: the option tables that commands share fill this struct,
 * most of them straight into the option structs of the client library.
 */
#pragma once

#include "base/buf.h"
#include "bunker.h"
#include "cli/options.h"

struct arguments {
	bool help;
	bool json;
	bool all;        /* rm */
	bool ids_only;   /* ls */
	bool with_input; /* run, exec */
	bool terminal;   /* exec */
	bool detach;     /* exec */
	bool follow;     /* logs, events, net */
	bool disk_only;  /* pause */
	bool reboot;     /* resume */
	bool tree;       /* kill */
	bool force;      /* jobs */
	bool keep;       /* shell */
	const char *process_name;
	const char *signal;
	const char *grace;
	const char *secret_file; /* secret set */
	const char *wait;
	int64_t offset, tail; /* logs, attach */
	struct option_list unset;
	const char *url;
	const char *api_key;
	struct option_list env;
	struct option_list metadata;
	struct option_list files;
	struct option_list dependencies, packages, volumes;
	struct option_settings settings; /* of a new sandbox */
	bool quiet;                      /* template build, cp */
	struct {
		struct bunker_place place;
		int64_t depth;
		bool recursive, long_form, follow;
		struct bunker_grep_options grep;
	} file; /* cp, files */
	struct {
		const char *tag, *file, *ready, *format, *ref, *digest, *creds, *authfile;
		const char *recipe, *suite, *include, *variant, *mirror;
		const char *network;
		struct option_list build_args, allow, deny;
		bool no_cache, insecure;
	} template;
	struct {
		const char *against;      /* diff */
		const char *to, *path;    /* discard */
		const char *tar, *size;   /* diff, volume create */
		const char *tag, *output; /* snapshot */
		bool text, yes, untag;
		int64_t count; /* fork */
	} disk;
	struct {
		const char *tenant, *scope, *expires;
	} key;
	struct {
		bool open, open_to_all, close;
		const char *forward, *token, *revoke;
	} port;
	struct bunker_create_options create;
	struct bunker_exec_options exec;
	struct bunker_list_options list;

	char **operands; /* closed by NULL */
	int operand_count;

	/* Owns the memory that the option structs borrow. */
	struct bunker_pair *env_pairs;
	struct bunker_pair *metadata_pairs;
	struct bunker_file *local_files;
	struct bunker_mount *mounts;
	struct buf input;
};

/* --json and --help, for every command. */
extern const struct option cli_common_options[];
/* --url and --api-key. */
extern const struct option cli_connection_options[];
/* The sandbox to make: run and create. */
extern const struct option cli_sandbox_options[];
/* The command line to run: run and exec. */
extern const struct option cli_command_options[];

/* The lists as the client library wants them. Says on stderr what is wrong; that is bad usage. */
int cli_arguments_resolve(struct arguments *args);
/* Reads the files of --file; says on stderr what cannot be read. */
int cli_arguments_load_files(struct arguments *args);
void cli_arguments_finish(struct arguments *args);
