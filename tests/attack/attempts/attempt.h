/*
 * What the attempt programs share. A program is a table of attempts; each runs in a child of its
 * own, so that one that is killed or hangs is a result like any other, and each prints one line:
 *
 *     NUMBER NAME BLOCKED|ESCAPED|ERROR detail
 *
 * ESCAPED means that the thing was done, BLOCKED that it was refused, ERROR that neither is
 * certain. A program is started as `PROGRAM inside` or `PROGRAM control`: the control is the same
 * attempt without walls, where it must report ESCAPED. It answers "ERROR absent: ..." where this
 * host lacks what the attempt is about, and "ERROR control: none, because ..." where it must not be
 * tried on a host.
 *
 * Names that begin with "may-" are things that stay allowed inside; there ESCAPED is right.
 */
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array)    (sizeof(array) / sizeof((array)[0]))
#define ATTEMPT_SECONDS 10

enum outcome {
	BLOCKED,
	ESCAPED,
	ERROR
};

struct attempt {
	int number;
	const char *name;
	enum outcome (*run)(const struct attempt *a);
	long arg;
	const char *text;
	int needs; /* a capability that even the host's root may lack; 0: none of note */
	const char *no_control; /* why it must not be tried on a host */
};

/* What a child leaves for its parent. */
static struct verdict {
	enum outcome outcome;
	int error;
	char detail[200];
} verdict;

static bool is_control;

__attribute__((format(printf, 2, 3), unused)) static enum outcome say(
	enum outcome outcome, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(verdict.detail, sizeof verdict.detail, format, args);
	va_end(args);
	return outcome;
}

/* A result as system calls give it: done, refused, or something that proves neither. */
__attribute__((unused)) static enum outcome judge(long r)
{
	if (r >= 0)
		return say(ESCAPED, "it worked");
	verdict.error = errno;
	bool refused = errno == EPERM || errno == EACCES || errno == ENOSYS || errno == EROFS ||
		       errno == ESRCH;
	return say(refused ? BLOCKED : ERROR, "%s", strerror(errno));
}

/* The same, for a call with arguments that cannot work: reaching the check of them is as good as
 * done. */
__attribute__((unused)) static enum outcome judge_reached(long r, int expected)
{
	if (r < 0 && errno == expected)
		return say(ESCAPED, "the kernel took it as far as: %s", strerror(errno));
	return judge(r);
}

/* For what is looked for by name: not being there is as good as being refused. */
__attribute__((unused)) static enum outcome judge_path(long r)
{
	if (r < 0 && (errno == ENOENT || errno == ENXIO || errno == ENODEV || errno == ENOTDIR)) {
		verdict.error = errno;
		return say(BLOCKED, "%s", strerror(errno));
	}
	return judge(r);
}

__attribute__((unused)) static const char *setting(const char *name)
{
	const char *value = getenv(name);
	return value ? value : "";
}

/*
 * A process that is not ours: init inside; in a control, where the host's init may be closed even
 * to root, the canary.
 */
__attribute__((unused)) static pid_t victim(void)
{
	return is_control ? atoi(setting("CANARY_PID")) : 1;
}

__attribute__((unused)) static const char *victim_path(const char *rest)
{
	static char path[256];
	snprintf(path, sizeof path, "/proc/%d/%s", (int)victim(), rest);
	return path;
}

static bool has_capability(int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	syscall(SYS_capget, &header, data);
	return data[capability / 32].effective >> (capability % 32) & 1;
}

/* What this kernel or this machine simply does not have. */
static bool is_absence(int error)
{
	static const int errors[] = {ENOSYS, ENODEV, ENXIO, ENOENT, EAFNOSUPPORT, EPROTONOSUPPORT,
		ESOCKTNOSUPPORT, EOPNOTSUPP, ENOPROTOOPT};
	for (size_t i = 0; i < COUNT(errors); i++)
		if (errors[i] == error)
			return true;
	return false;
}

static void read_verdict(int fd, pid_t pid)
{
	int status = 0;
	ssize_t n = read(fd, &verdict, sizeof verdict);
	waitpid(pid, &status, 0);
	if (n == (ssize_t)sizeof verdict)
		return;
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	verdict.error = 0;
	verdict.outcome = number == SIGSYS ? say(BLOCKED, "killed by SIGSYS")
			  : number == SIGALRM
				  ? say(ERROR, "no result in %d s", ATTEMPT_SECONDS)
				  : say(ERROR, "it ended with status 0x%x", (unsigned)status);
}

static void run_in_child(const struct attempt *a)
{
	int p[2];
	if (pipe(p) < 0)
		exit(2);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		close(p[0]);
		fcntl(p[1], F_SETFD, FD_CLOEXEC);
		alarm(ATTEMPT_SECONDS);
		memset(&verdict, 0, sizeof verdict);
		verdict.outcome = a->run(a);
		_exit(write(p[1], &verdict, sizeof verdict) != (ssize_t)sizeof verdict);
	}
	close(p[1]);
	memset(&verdict, 0, sizeof verdict);
	if (pid < 0)
		verdict.outcome = say(ERROR, "fork: %s", strerror(errno));
	else
		read_verdict(p[0], pid);
	close(p[0]);
}

static void explain_control(const struct attempt *a)
{
	bool lacks = a->needs && !has_capability(a->needs);
	char reason[sizeof verdict.detail];
	if (verdict.outcome == ESCAPED || (!is_absence(verdict.error) && !lacks))
		return;
	snprintf(reason, sizeof reason, "%.150s", verdict.detail);
	verdict.outcome = lacks ? say(ERROR, "absent: root lacks capability %d here", a->needs)
				: say(ERROR, "absent: %s", reason);
}

static void report(const struct attempt *a)
{
	static const char *const names[] = {"BLOCKED", "ESCAPED", "ERROR"};
	for (char *p = verdict.detail; *p; p++)
		if (*p == '\n')
			*p = ' ';
	printf("%d %s %s %s\n", a->number, a->name, names[verdict.outcome], verdict.detail);
}

/* For what must never run on a host: there is no filter there. */
__attribute__((unused)) static void must_be_inside(void)
{
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2)
		return;
	fprintf(stderr, "this is for the inside of a sandbox only\n");
	exit(2);
}

__attribute__((unused)) static int attempts_main(
	int argc, char **argv, const struct attempt *table, size_t count)
{
	is_control = argc > 1 && strcmp(argv[1], "control") == 0;
	if (!is_control && (argc < 2 || strcmp(argv[1], "inside") != 0)) {
		fprintf(stderr, "usage: %s inside|control\n", argv[0]);
		return 2;
	}
	for (size_t i = 0; i < count; i++) {
		memset(&verdict, 0, sizeof verdict);
		if (is_control && table[i].no_control) {
			verdict.outcome =
				say(ERROR, "control: none, because %s", table[i].no_control);
		} else {
			run_in_child(&table[i]);
			if (is_control)
				explain_control(&table[i]);
		}
		report(&table[i]);
	}
	return 0;
}
