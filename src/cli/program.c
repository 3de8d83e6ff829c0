#include "cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/report.h"

#define NOT_FOUND 127

__attribute__((noreturn)) static void become(const char *const *argv, int input_fd, int output_fd)
{
	int in = input_fd >= 0 ? input_fd : open("/dev/null", O_RDONLY);
	/* Its stderr goes to the user, not into our output. */
	int out = output_fd >= 0 ? output_fd : STDERR_FILENO;
	if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
		execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(errno == ENOENT ? NOT_FOUND : 126);
}

int cli_program_start(struct program *p, const char *const *argv, int input_fd, bool with_output)
{
	int ends[2] = {-1, -1};
	if (with_output && pipe2(ends, O_CLOEXEC) < 0)
		return cli_report("cannot start %s: %s", argv[0], strerror(errno));
	p->pid = fork();
	if (p->pid == 0)
		become(argv, input_fd, ends[1]);
	int error = errno;
	if (ends[1] >= 0)
		close(ends[1]);
	p->output = ends[0];
	if (p->pid > 0)
		return 0;
	if (ends[0] >= 0)
		close(ends[0]);
	return cli_report("cannot start %s: %s", argv[0], strerror(error));
}

int cli_program_end(struct program *p, const char *name)
{
	int status;
	if (p->output >= 0)
		close(p->output);
	p->output = -1;
	while (waitpid(p->pid, &status, 0) < 0)
		if (errno != EINTR)
			return cli_report("cannot wait for %s: %s", name, strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND)
		return cli_report(
			"%s is needed for this; on Debian: apt-get install %s", name, name);
	if (WIFSIGNALED(status))
		return cli_report("%s was ended by signal %d", name, WTERMSIG(status));
	return cli_report("%s ended with status %d", name, WEXITSTATUS(status));
}

int cli_program_run(const char *const *argv, int output_fd)
{
	struct program p = {.pid = fork(), .output = -1};
	if (p.pid == 0)
		become(argv, -1, output_fd);
	if (p.pid < 0)
		return cli_report("cannot start %s: %s", argv[0], strerror(errno));
	return cli_program_end(&p, argv[0]);
}
