/*
 * E2B's own SDK against the pooled server: a node process makes its cycles and prints what each
 * call took, and what the SDK itself takes, with a server that only replays. Where there is no
 * node, or the SDK is not installed, the rows say so.
 */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

static const enum row sdk_rows[] = {
	ROW_E2B_CYCLE, ROW_E2B_CREATE, ROW_E2B_RUN, ROW_E2B_KILL, ROW_E2B_FLOOR};

static int skip(struct bench *b, const char *reason)
{
	for (size_t i = 0; i < ARRAY_LEN(sdk_rows); i++)
		snprintf(b->skipped[sdk_rows[i]], sizeof b->skipped[0], "%s", reason);
	return 0;
}

static void set_variables(const struct server *s)
{
	char url[64], key[sizeof s->key + 8];
	const char *body = strncmp(s->key, "bnk_", 4) == 0 ? s->key + 4 : s->key;
	snprintf(url, sizeof url, "http://127.0.0.1:%u", s->port);
	snprintf(key, sizeof key, "e2b_%s", body);
	setenv("E2B_API_URL", url, 1);
	setenv("E2B_SANDBOX_URL", url, 1);
	setenv("E2B_API_KEY", key, 1);
}

static void __attribute__((noreturn)) node_exec(const struct bench *b, int out)
{
	char samples[16], parallel[16];
	snprintf(samples, sizeof samples, "%u", b->options.samples);
	snprintf(parallel, sizeof parallel, "%u", b->options.sdk_parallel);
	set_variables(&b->pooled);
	if (dup2(out, STDOUT_FILENO) >= 0)
		execlp("node", "node", BENCH_SOURCE "/e2b.mjs", samples, parallel, (char *)NULL);
	_exit(127);
}

static void take_line(struct bench *b, const char *line)
{
	long long create, run, kill, floor;
	unsigned count;
	if (sscanf(line, "parallel %u %lld", &count, &create) == 2) {
		b->sdk.parallel = count;
		b->sdk.parallel_us = create;
	} else if (sscanf(line, "%lld %lld %lld %lld", &create, &run, &kill, &floor) == 4) {
		samples_add(&b->rows[ROW_E2B_CYCLE], create + run + kill);
		samples_add(&b->rows[ROW_E2B_CREATE], create);
		samples_add(&b->rows[ROW_E2B_RUN], run);
		samples_add(&b->rows[ROW_E2B_KILL], kill);
		samples_add(&b->rows[ROW_E2B_FLOOR], floor);
	}
}

static void take_lines(struct bench *b, int fd)
{
	char line[128];
	FILE *in = fdopen(fd, "r");
	if (!in) {
		close(fd);
		return;
	}
	while (fgets(line, sizeof line, in))
		take_line(b, line);
	fclose(in);
}

int sdk_run(struct bench *b)
{
	int pipes[2], status;
	if (access(BENCH_SOURCE "/../tests/sdk/e2b/node_modules/e2b/package.json", R_OK) < 0)
		return skip(b, "the SDK is not installed (tests/sdk/install)");
	if (pipe(pipes) < 0)
		return bench_fail("cannot make a pipe: %s", strerror(errno));
	server_settle(&b->pooled);
	pid_t pid = fork();
	if (pid == 0)
		node_exec(b, pipes[1]);
	close(pipes[1]);
	take_lines(b, pipes[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return bench_fail("cannot run node: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return skip(b, "there is no node");
	return WIFEXITED(status) && WEXITSTATUS(status) == 0
		       ? 0
		       : bench_fail("node bench/e2b.mjs failed");
}
