#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "cli/target.h"

struct removal {
	struct bunker *bunker;
	const struct arguments *args;
	cJSON *removed; /* ids, for --json */
	int status;
};

static int rm_destroy(struct bunker *b, const char *id, void *arg, struct bunker_error *e)
{
	cJSON *removed = arg;
	int r = bunker_destroy(b, id, e);
	if (r == 0)
		cJSON_AddItemToArray(removed, cJSON_CreateString(id));
	return r;
}

/* A failure does not stop the rest. */
static void remove_one(struct removal *removal, const char *target)
{
	struct bunker_error e;
	if (cli_target_apply(removal->bunker, target, rm_destroy, removal->removed, &e) < 0) {
		cli_session_report(removal->args, &e);
		removal->status = STATUS_FAILED;
	}
}

/* Scripts have decided. */
static bool all_are_unwanted(const struct arguments *args, size_t count)
{
	if (args->disk.yes || count == 0 || !isatty(STDIN_FILENO))
		return true;
	return cli_ask("Remove %s%zu sandbox%s, with everything in %s?",
		count > 1 ? "all " : "the ", count, count > 1 ? "es" : "",
		count > 1 ? "them" : "it");
}

static void remove_all(struct removal *removal)
{
	struct bunker_sandbox_list list;
	struct bunker_error e;
	if (bunker_list(removal->bunker, &removal->args->list, &list, &e) < 0) {
		cli_session_report(removal->args, &e);
		removal->status = STATUS_FAILED;
		return;
	}
	size_t count = all_are_unwanted(removal->args, list.count) ? list.count : 0;
	if (count < list.count) {
		cli_report("nothing was removed");
		removal->status = STATUS_FAILED;
	}
	for (size_t i = 0; i < count; i++)
		remove_one(removal, list.items[i].id);
	bunker_sandbox_list_finish(&list);
}

static void print_removed(const struct removal *removal)
{
	if (removal->args->json) {
		cJSON *answer = cJSON_CreateObject();
		cJSON_AddItemReferenceToObject(answer, "removed", removal->removed);
		autofree char *json = cJSON_PrintUnformatted(answer);
		puts(json ? json : "");
		cJSON_Delete(answer);
		return;
	}
	for (const cJSON *id = removal->removed->child; id; id = id->next)
		puts(id->valuestring);
}

static int run_rm(struct arguments *args)
{
	struct removal removal = {.args = args};
	if (args->all == (args->operand_count > 0)) {
		cli_report("give either the sandboxes to remove or --all");
		return STATUS_USAGE;
	}
	if (cli_session_open(args, SESSION_NEEDS_SERVER, &removal.bunker) < 0)
		return STATUS_FAILED;
	removal.removed = cJSON_CreateArray();
	if (args->all)
		remove_all(&removal);
	for (int i = 0; i < args->operand_count; i++)
		remove_one(&removal, args->operands[i]);
	bunker_close(removal.bunker);
	print_removed(&removal);
	cJSON_Delete(removal.removed);
	return removal.status;
}

static const struct option own_options[] = {
	{'a', "all", NULL, OPTION_FLAG, offsetof(struct arguments, all), "every sandbox there is"},
	{'y', "yes", NULL, OPTION_FLAG, offsetof(struct arguments, disk.yes),
		"with --all: do not ask"},
	{0},
};

static const struct option *const rm_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_rm = {
	.name = "rm",
	.summary = "destroy sandboxes",
	.usage = "[options] SANDBOX... | --all",
	.description =
		"Kills everything in the sandboxes, given by id or name, and deletes their disks.\n"
		"Prints the ids of those that are gone. At a terminal, --all says how many there are and\n"
		"asks first.",
	.examples = "  bunker rm work\n"
		    "  bunker rm $(bunker ls -q -m team=red)\n"
		    "  bunker rm --all --yes",
	.options = rm_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.max_operands = OPERANDS_MANY,
	.run = run_rm,
};
