/* Other programs that do what they do best: tar, skopeo, mmdebstrap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct program {
	pid_t pid;
	int output; /* its stdout; -1: ours */
};

/*
 * argv[0] is looked for in PATH. input_fd is its stdin, or -1 for none; with_output gives us its
 * stdout. Says on stderr when it is not there.
 */
int cli_program_start(struct program *p, const char *const *argv, int input_fd, bool with_output);
/* Waits for its end; 0 when it went well. Says on stderr when it did not. */
int cli_program_end(struct program *p, const char *name);
/* Both. Its stdout is output_fd, or with -1 our stderr. */
int cli_program_run(const char *const *argv, int output_fd);
