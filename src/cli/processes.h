/* Processes and jobs as a table. */
#pragma once

#include "cli/arguments.h"

/* As --json, --ids and the rest say. Returns the exit status. */
int cli_processes_print(const struct arguments *args, const struct bunker_process_list *list);
