/* A server with a data directory of its own, started with --drain: when it ends, nothing is left.
 */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

#define START_TIMEOUT_US (30 * 1000000)
#define CHILDREN_MAX     2048

/* Only our own settings count, whatever the caller's environment says. */
static void forget_settings(void)
{
	static const char *const names[] = {"BUNKER_LISTEN", "BUNKER_DATA", "BUNKER_API_KEY",
		"BUNKER_NO_AUTH", "BUNKER_POOL", "BUNKER_CONFIG", "BUNKER_MAX_SANDBOXES",
		"BUNKER_MEMORY", "BUNKER_CPU", "BUNKER_PIDS"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		unsetenv(names[i]);
}

static void __attribute__((noreturn))
server_exec(const struct server *s, const char *bunker, const char *const *options)
{
	const char *argv[24] = {bunker, "serve", "--listen", "127.0.0.1:0", "--data", s->data,
		"--drain", "--config", "/dev/null"};
	for (size_t i = 0; options[i]; i++)
		argv[9 + i] = options[i];
	int log = open(s->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	/* Should we be killed, it goes, and takes its sandboxes along. */
	prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
	forget_settings();
	if (log >= 0 && dup2(log, STDERR_FILENO) >= 0)
		execv(bunker, (char **)(uintptr_t)argv);
	_exit(127);
}

static int read_text(const char *path, struct buf *out)
{
	int r = fd_read_file_at(AT_FDCWD, path, out, 1 << 20);
	buf_append_char(out, '\0');
	return r < 0 || out->failed ? -1 : 0;
}

/* The port, once the server has said it; 0 before. */
static uint16_t announced_port(const struct server *s)
{
	static const char line[] = "bunker: listening on http://127.0.0.1:";
	autobuf text = {0};
	if (read_text(s->log, &text) < 0)
		return 0;
	const char *at = strstr(text.data, line);
	return at && strchr(at, '\n') ? (uint16_t)strtoul(at + strlen(line), NULL, 10) : 0;
}

static int fail_with_log(struct server *s, const char *reason)
{
	autobuf text = {0};
	read_text(s->log, &text);
	return bench_fail("%s:\n%s", reason, text.len ? text.data : "");
}

static int wait_for_port(struct server *s)
{
	int64_t deadline = clock_monotonic_us() + START_TIMEOUT_US;
	while ((s->port = announced_port(s)) == 0) {
		if (waitpid(s->pid, NULL, WNOHANG) != 0) {
			s->pid = 0;
			return fail_with_log(s, "the server did not start");
		}
		if (bench_interrupted || clock_monotonic_us() > deadline)
			return fail_with_log(s, "the server took too long to start");
		usleep(500);
	}
	return 0;
}

static int read_key(struct server *s)
{
	char path[BENCH_PATH_MAX + 16];
	autobuf text = {0};
	snprintf(path, sizeof path, "%s/api-key", s->data);
	if (read_text(path, &text) < 0)
		return bench_fail("cannot read %s", path);
	snprintf(s->key, sizeof s->key, "%.*s", (int)strcspn(text.data, "\n"), text.data);
	return 0;
}

int server_start(
	struct server *s, const char *bunker, const char *dir, const char *name, const char *pool)
{
	const char *const options[] = {pool ? "--pool" : NULL, pool, NULL};
	return server_start_with(s, bunker, dir, name, options);
}

int server_start_with(struct server *s, const char *bunker, const char *dir, const char *name,
	const char *const *options)
{
	*s = (struct server){0};
	if (snprintf(s->data, sizeof s->data, "%s/%s", dir, name) >= (int)sizeof s->data ||
		snprintf(s->log, sizeof s->log, "%s/%s.log", dir, name) >= (int)sizeof s->log)
		return bench_fail("the path %s is too long", dir);
	unlink(s->log); /* of an earlier start: its port is another */
	int64_t began = clock_monotonic_us();
	s->pid = fork();
	if (s->pid < 0)
		return bench_fail("cannot fork: %s", strerror(errno));
	if (s->pid == 0)
		server_exec(s, bunker, options);
	if (wait_for_port(s) < 0 || read_key(s) < 0)
		return -1;
	s->start_us = clock_monotonic_us() - began;
	server_settle(s);
	return 0;
}

int server_stop(struct server *s)
{
	int status = 0;
	if (s->pid == 0)
		return 0;
	kill(s->pid, SIGTERM);
	while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
		;
	s->pid = 0;
	return status == 0 ? 0 : fail_with_log(s, "the server did not end well");
}

/* ---- its processes ---- */

/* By its own name, or, for an init that was run from a memfd, by its first argument. */
static bool is_named(pid_t pid, const char *name)
{
	static const char *const files[] = {"comm", "cmdline"};
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		char path[64];
		autobuf text = {0};
		snprintf(path, sizeof path, "/proc/%d/%s", pid, files[i]);
		if (read_text(path, &text) < 0)
			return false;
		text.data[strcspn(text.data, "\n")] = '\0';
		if (strcmp(text.data, name) == 0)
			return true;
	}
	return false;
}

size_t server_children(const struct server *s, const char *name, pid_t *out, size_t max)
{
	char path[64];
	autobuf text = {0};
	size_t n = 0;
	snprintf(path, sizeof path, "/proc/%d/task/%d/children", s->pid, s->pid);
	if (read_text(path, &text) < 0)
		return 0;
	for (char *p = text.data, *end; n < max; p = end) {
		pid_t pid = (pid_t)strtol(p, &end, 10);
		if (end == p)
			break;
		if (is_named(pid, name))
			out[n++] = pid;
	}
	return n;
}

void server_settle(const struct server *s)
{
	static pid_t inits[CHILDREN_MAX];
	size_t before = (size_t)-1;
	for (int i = 0; i < 100; i++) {
		size_t now = server_children(s, "bunker-init", inits, CHILDREN_MAX);
		if (now == before)
			return;
		before = now;
		usleep(100000);
	}
}
