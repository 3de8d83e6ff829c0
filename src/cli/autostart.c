/*
 * `/proc/self/exe serve` in a session of its own, with its output appended to <data>/serve.log. It
 * is up when the log says so; the log is watched, not polled.
 *
 * Two commands that start at once must not start two servers: they take turns by a lock on the log,
 * on a file description of the CLI's own, so that the server does not inherit it.
 */
#include "cli/autostart.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cli/report.h"
#include "cli/session.h"

#define READY_LINE    "bunker: listening on"
#define READY_TIME_US (15 * 1000000LL)
#define LOG_MAX       ((size_t)1 << 20)
#define LOG_SHOWN     5 /* lines */

struct autostart {
	char *log_path;
	int log_fd;   /* for reading, from where this server's part begins; holds the lock */
	int watch_fd; /* inotify on the log */
	int child_fd; /* pidfd */
	pid_t pid;
	struct buf log; /* what this server has written so far */
};

static int make_data_dir(void)
{
	autofree char *path = cli_session_data_path("");
	if (!path)
		return cli_report("out of memory");
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return cli_report("cannot make %s: %s", path, strerror(errno));
	return 0;
}

static int autostart_open_log(struct autostart *s)
{
	s->log_path = cli_session_data_path("serve.log");
	if (!s->log_path)
		return cli_report("out of memory");
	s->log_fd = open(s->log_path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	s->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (s->log_fd < 0 || s->watch_fd < 0 ||
		inotify_add_watch(s->watch_fd, s->log_path, IN_MODIFY) < 0 ||
		flock(s->log_fd, LOCK_EX) < 0 || lseek(s->log_fd, 0, SEEK_END) < 0)
		return cli_report("cannot open %s: %s", s->log_path, strerror(errno));
	return 0;
}

/* In the child. Only what is safe between fork and exec. */
static _Noreturn void become_server(const char *log_path)
{
	static char name[] = "bunker", command[] = "serve", listen[] = "--listen=127.0.0.1:2468";
	char *const argv[] = {name, command, listen, NULL};
	setsid();
	unsetenv("BUNKER_API_KEY"); /* of a client, not of this server */
	int null = open("/dev/null", O_RDONLY);
	int log = open(log_path, O_WRONLY | O_APPEND);
	if (null < 0 || log < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 ||
		chdir("/") < 0)
		_exit(STATUS_FAILED);
	close(null);
	close(log);
	execv("/proc/self/exe", argv);
	_exit(STATUS_FAILED);
}

static int autostart_spawn(struct autostart *s)
{
	s->pid = fork();
	if (s->pid == 0)
		become_server(s->log_path);
	if (s->pid > 0)
		s->child_fd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	if (s->pid < 0 || s->child_fd < 0)
		return cli_report("cannot start a server: %s", strerror(errno));
	return 0;
}

static bool autostart_is_ready(struct autostart *s)
{
	char events[4096];
	while (read(s->watch_fd, events, sizeof events) > 0)
		;
	fd_read_all(s->log_fd, &s->log, LOG_MAX);
	return s->log.len > 0 && memmem(s->log.data, s->log.len, READY_LINE, strlen(READY_LINE));
}

/* NULL once it is up, or what went wrong. */
static const char *await_ready(struct autostart *s)
{
	int64_t deadline_us = clock_monotonic_us() + READY_TIME_US;
	struct pollfd fds[] = {
		{.fd = s->watch_fd, .events = POLLIN}, {.fd = s->child_fd, .events = POLLIN}};
	while (!autostart_is_ready(s)) {
		int64_t left_us = deadline_us - clock_monotonic_us();
		if (fds[1].revents)
			return "it ended at once";
		if (left_us <= 0)
			return "it is not up after 15 seconds";
		poll(fds, ARRAY_LEN(fds), (int)(left_us / 1000) + 1);
	}
	return NULL;
}

static void show_log_end(const struct autostart *s)
{
	size_t start = s->log.len, lines = 0;
	while (start > 0) {
		if (s->log.data[start - 1] == '\n' && start < s->log.len && ++lines == LOG_SHOWN)
			break;
		start--;
	}
	if (s->log.len > 0)
		fd_write_all(STDERR_FILENO, s->log.data + start, s->log.len - start);
}

static int start_and_wait(struct autostart *s)
{
	if (autostart_spawn(s) < 0)
		return -1;
	const char *wrong = await_ready(s);
	if (wrong) {
		cli_report("cannot start a server: %s; the end of %s:", wrong, s->log_path);
		show_log_end(s);
		return -1;
	}
	cli_report("no server was running; started one in the background (pid %d, log %s)",
		(int)s->pid, s->log_path);
	return 0;
}

int cli_autostart_server(const char *url)
{
	struct autostart s = {.log_fd = -1, .watch_fd = -1, .child_fd = -1};
	if (geteuid() != 0)
		return cli_report(
			"no server at %s, and only root can start one: sudo bunker serve", url);
	int r = make_data_dir();
	if (r == 0)
		r = autostart_open_log(&s);
	/* While we waited for the lock, the one before us may have started it. */
	if (r == 0 && cli_session_is_dead(url))
		r = start_and_wait(&s);
	cleanup_close(&s.log_fd);
	cleanup_close(&s.watch_fd);
	cleanup_close(&s.child_fd);
	free(s.log_path);
	buf_finish(&s.log);
	return r;
}
