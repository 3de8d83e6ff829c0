/*
 * The command line, by tables.
 *
 * An option is `--name`, `--name value`, `--name=value`, `-n`, `-n value` or `-nvalue`; letters of
 * flags may share a dash. Two letters together may be a flag of their own, in either order, where
 * each alone is something else: `-it`. `--` ends the options. Each table entry says where the value
 * goes, as an offset into the struct that cli_options_parse fills; a command has several tables
 * when it shares options.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/field.h"
#include "bunker.h"

enum option_kind {
	OPTION_FLAG,   /* bool */
	OPTION_STRING, /* const char *; the last one given counts */
	OPTION_NUMBER, /* int64_t, at least 1 */
	OPTION_LIST,   /* struct option_list; every one given counts */
	OPTION_FIELDS  /* struct option_settings; stands for the options of a table of fields */
};

/* The items are argv's own strings; free(items) is the owner's. */
struct option_list {
	char **items;
	size_t count;
};

/* Settings by their names in the API; free(items) is the owner's. */
struct option_settings {
	struct bunker_pair *items;
	size_t count;
};

/* A table ends with an entry that has no name. */
struct option {
	char letter; /* 0: none */
	const char *name;
	const char *value; /* what the help calls it; NULL for flags */
	enum option_kind kind;
	size_t offset;
	const char *help;
	const struct field_table *fields; /* of OPTION_FIELDS */
	const struct field *field;        /* in what cli_options_next gives of them */
	const char *together;             /* of a flag: two letters that mean it behind one dash */
};

/*
 * Walks all options of a list of tables, those of fields among them: *at begins with 0. False at
 * the end.
 */
bool cli_options_next(const struct option *const *tables, size_t *at, struct option *ret);

/* Operands may stand anywhere among the options. */
#define OPTIONS_ANYWHERE (-1)

struct options_input {
	const struct option *const *tables; /* closed by NULL */
	/*
	 * How many operands come before a command to run: from the next one on, everything is an
	 * operand, so that `run ls -l` needs no `--`.
	 */
	int operands_before_command;
	int argc;
	char **argv; /* without the command's own name */
};

/*
 * Fills the struct at destination. The operands are moved to the front of argv; returns how many
 * there are, or -1 with a sentence in message.
 */
int cli_options_parse(
	const struct options_input *input, void *destination, char *message, size_t message_size);
