#include <stdio.h>

#include "base/cleanup.h"
#include "cli/disks.h"

static int work_fork(struct job *j, struct bunker_error *e)
{
	struct bunker_sandbox_list list;
	int64_t count = j->args->disk.count ? j->args->disk.count : 1;
	if (bunker_fork(j->bunker, j->sandbox, count, &list, e) < 0)
		return -1;
	autofree char *json = j->args->json ? bunker_sandbox_list_json(&list) : NULL;
	if (json)
		puts(json);
	for (size_t i = 0; !json && i < list.count; i++)
		puts(list.items[i].id);
	bunker_sandbox_list_finish(&list);
	return 0;
}

static const struct option own_options[] = {
	{'n', "count", "N", OPTION_NUMBER, offsetof(struct arguments, disk.count),
		"so many copies, 100 at most; 1 if not given"},
	{0},
};

static const struct option *const fork_options[] = {
	own_options, cli_connection_options, cli_common_options, NULL};

const struct command cmd_fork = {
	.name = "fork",
	.summary = "make copies of a sandbox",
	.usage = "[options] SANDBOX",
	.description =
		"Makes sandboxes with a copy of this one's disk, all of the same moment, all or none, and\n"
		"prints their ids. They have its settings and environment, but not its name. Processes and\n"
		"memory are not copied: each is freshly booted.",
	.examples = "  bunker fork work\n"
		    "  for box in $(bunker fork -n 10 work); do bunker exec $box ./try.sh & done",
	.options = fork_options,
	.operands_before_command = OPTIONS_ANYWHERE,
	.min_operands = 1,
	.max_operands = 1,
	.in_sandbox = true,
	.work = work_fork,
};
