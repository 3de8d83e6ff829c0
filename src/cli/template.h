/* Shared by the parts of `bunker template`. */
#pragma once

#include "cli/job.h"
#include "cli/program.h"
#include "cli/session.h"

extern const struct command cmd_template_ls, cmd_template_info, cmd_template_import,
	cmd_template_build, cmd_template_debian, cmd_template_tag, cmd_template_untag,
	cmd_template_rm, cmd_template_log;

/* Says how a build ended; the exit status. Frees the build. */
int cli_template_report(const struct arguments *args, struct bunker_build *build);
/* Follows a build to its end, with its log on stderr unless that is to be quiet. */
int cli_template_follow(struct arguments *args, struct bunker *b, const char *id);
/* An archive that a program writes, or a file descriptor, as the library reads it. */
ptrdiff_t cli_template_read(void *fd, char *data, size_t size);
/* Imports what fd gives; program is what writes it, or NULL. The exit status. */
int cli_template_send(struct arguments *args, const struct bunker_import_options *wanted, int fd,
	struct program *program, const char *program_name);
