/* Messages on stderr: always one line that starts with "bunker: ". */
#pragma once

#include "bunker.h"

/* From 124 on: run and exec, which pass the inner command's status on; numbers of timeout and
 * docker. */
#define STATUS_FAILED       1
#define STATUS_USAGE        2
#define STATUS_TIMEOUT      124
#define STATUS_NOT_EXECUTED 125
#define STATUS_SIGNALED(n)  (128 + (n))

/* Returns -1, so that `return cli_report(…)` reads well. */
int cli_report(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "bunker: message (code)", with the field at fault in front if the message does not name it. */
void cli_report_error(const struct bunker_error *e);
