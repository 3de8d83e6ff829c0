/*
 * One loop over stdin, the connection and signals. On a terminal everything typed goes to the
 * process as it is, but for what follows a ~ at the beginning of a line: ~. detaches, ~? helps, ~~
 * is a ~. Output goes out as it comes.
 *
 * When the connection is lost the process goes on without us, so we attach again where we were.
 */
#include "cli/console.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/execution.h"
#include "cli/report.h"
#include "cli/session.h"

#define QUEUE_MAX      (256u * 1024)
#define RETRY_NS       200000000
#define RETRIES        (SESSION_PATIENCE_S * (1000000000 / RETRY_NS))
#define STATUS_GOES_ON (-2)

struct console_run {
	const struct arguments *args;
	struct bunker *bunker;
	const struct console *console;
	struct bunker_attachment *attachment;
	struct execution execution; /* whether our output can be written */
	int64_t offset[2];
	int signal_fd;
	struct termios saved;
	bool raw;
	bool input_open;
	bool line_begins, tilde; /* of what is typed */
};

/* ---- our terminal ---- */

void cli_console_size(unsigned *rows, unsigned *columns)
{
	struct winsize size;
	*rows = 24;
	*columns = 80;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
		return;
	*rows = size.ws_row < 1000 ? size.ws_row : 1000;
	*columns = size.ws_col < 1000 ? size.ws_col : 1000;
}

static void make_raw(struct console_run *r)
{
	struct termios t;
	if (!r->console->terminal || !isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &t) < 0)
		return;
	r->saved = t;
	cfmakeraw(&t);
	r->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &t) == 0;
}

static void make_cooked(struct console_run *r)
{
	if (r->raw)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &r->saved);
	r->raw = false;
}

/* In raw mode a line ends only with both. */
static void console_say(const char *text)
{
	fd_write_all(STDERR_FILENO, text, strlen(text));
}

/* ---- what is typed ---- */

/* Sends keys to the process. Returns true if the user wants to leave. */
static bool filter_keys(struct console_run *r, const char *keys, size_t len, struct buf *out)
{
	for (size_t i = 0; i < len; i++) {
		char key = keys[i];
		if (r->tilde) {
			r->tilde = false;
			if (key == '.')
				return true;
			if (key == '?') {
				console_say(
					"\r\n~. detaches and leaves the process running, ~~ is a ~\r\n");
				continue;
			}
			buf_append_char(out, '~');
			if (key == '~')
				continue;
		} else if (r->line_begins && key == '~') {
			r->tilde = true;
			r->line_begins = false;
			continue;
		}
		r->line_begins = key == '\r' || key == '\n';
		buf_append_char(out, key);
	}
	return false;
}

static int console_input_ready(struct console_run *r)
{
	char data[16384];
	autobuf keys = {0};
	ssize_t n = read(STDIN_FILENO, data, sizeof data);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return STATUS_GOES_ON;
	if (n <= 0) {
		r->input_open = false;
		bunker_attachment_end_input(r->attachment);
		return STATUS_GOES_ON;
	}
	if (!r->raw) {
		bunker_attachment_write(r->attachment, data, (size_t)n);
		return STATUS_GOES_ON;
	}
	if (filter_keys(r, data, (size_t)n, &keys))
		return CONSOLE_DETACHED;
	if (keys.len > 0)
		bunker_attachment_write(r->attachment, keys.data, keys.len);
	return STATUS_GOES_ON;
}

/* ---- signals ---- */

static int open_signals(sigset_t *before)
{
	sigset_t wanted;
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGWINCH);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGHUP);
	sigprocmask(SIG_BLOCK, &wanted, before);
	return signalfd(-1, &wanted, SFD_CLOEXEC);
}

static int signal_ready(struct console_run *r)
{
	struct signalfd_siginfo info;
	unsigned rows, columns;
	if (read(r->signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
		return STATUS_GOES_ON;
	if (info.ssi_signo != SIGWINCH)
		return STATUS_SIGNALED((int)info.ssi_signo);
	cli_console_size(&rows, &columns);
	if (r->console->terminal)
		bunker_attachment_resize(r->attachment, rows, columns);
	return STATUS_GOES_ON;
}

/* ---- the connection ---- */

static int console_attach(struct console_run *r, struct bunker_error *e)
{
	int result = bunker_attach(r->bunker, r->console->sandbox, r->console->process, r->offset,
		cli_execution_pass_output, &r->execution, &r->attachment, e);
	unsigned rows, columns;
	if (result < 0 || !r->console->terminal)
		return result;
	cli_console_size(&rows, &columns);
	bunker_attachment_resize(r->attachment, rows, columns);
	return 0;
}

static bool console_is_lost(const struct bunker_error *e)
{
	return strcmp(e->code, BUNKER_CONNECTION_LOST) == 0 ||
	       strcmp(e->code, BUNKER_NO_SERVER) == 0 || e->http_status == 503;
}

/* The server may be restarting: its processes are not. */
static int attach_again(struct console_run *r, struct bunker_error *e)
{
	const struct timespec pause = {.tv_nsec = RETRY_NS};
	for (int i = 0; i < 2; i++)
		r->offset[i] = bunker_attachment_offset(r->attachment, (enum bunker_stream)i);
	bunker_attachment_close(r->attachment);
	r->attachment = NULL;
	for (int i = 0; i < RETRIES; i++) {
		nanosleep(&pause, NULL);
		if (console_attach(r, e) == 0)
			return 0;
		if (!console_is_lost(e))
			break;
	}
	return -1;
}

static int console_finish(struct console_run *r)
{
	struct bunker_result result;
	struct bunker_error e;
	if (bunker_attachment_result(r->attachment, &result, &e) < 0) {
		cli_report_error(&e);
		return STATUS_NOT_EXECUTED;
	}
	make_cooked(r);
	int status = cli_execution_status(&result);
	bunker_result_finish(&result);
	return status;
}

/* Behind whatever the process wrote last, which need not have ended its line. */
static void report_end(const struct console_run *r, const struct bunker_error *e)
{
	if (r->console->terminal)
		fputc('\n', stderr);
	cli_session_report(r->args, e);
	if (console_is_lost(e))
		cli_report("the process goes on; come back with: bunker attach %s %s",
			r->console->sandbox, r->console->process);
}

static int connection_ready(struct console_run *r)
{
	struct bunker_error e;
	int more = bunker_attachment_step(r->attachment, &e);
	if (more > 0)
		return STATUS_GOES_ON;
	if (more == 0)
		return console_finish(r);
	if (console_is_lost(&e) && attach_again(r, &e) == 0)
		return STATUS_GOES_ON;
	make_cooked(r);
	if (r->execution.write_error == EPIPE)
		return STATUS_SIGNALED(SIGPIPE);
	if (r->execution.write_error)
		cli_report("cannot write the output: %s", strerror(r->execution.write_error));
	else
		report_end(r, &e);
	return STATUS_NOT_EXECUTED;
}

static int wait_and_handle(struct console_run *r)
{
	size_t queued = bunker_attachment_queued(r->attachment);
	bool wants_input = r->input_open && queued < QUEUE_MAX;
	struct pollfd fds[] = {
		{.fd = bunker_attachment_fd(r->attachment),
			.events = (short)(POLLIN | (queued ? POLLOUT : 0))},
		{.fd = r->signal_fd, .events = POLLIN},
		{.fd = wants_input ? STDIN_FILENO : -1, .events = POLLIN},
	};
	if (poll(fds, ARRAY_LEN(fds), -1) < 0)
		return errno == EINTR ? STATUS_GOES_ON : STATUS_NOT_EXECUTED;
	int status = STATUS_GOES_ON;
	if (fds[1].revents)
		status = signal_ready(r);
	if (status == STATUS_GOES_ON && fds[2].revents)
		status = console_input_ready(r);
	if (status == STATUS_GOES_ON && fds[0].revents)
		status = connection_ready(r);
	return status;
}

int cli_console_run(const struct arguments *args, struct bunker *b, const struct console *console)
{
	struct console_run r = {.args = args,
		.bunker = b,
		.console = console,
		.offset = {console->offset, console->offset},
		.input_open = console->with_input,
		.line_begins = true};
	struct bunker_error e;
	sigset_t before;
	if (console_attach(&r, &e) < 0) {
		cli_session_report(args, &e);
		return STATUS_NOT_EXECUTED;
	}
	r.signal_fd = open_signals(&before);
	make_raw(&r);
	/* Bytes that came with the handshake are not in the socket any more. */
	int status = connection_ready(&r);
	while (status == STATUS_GOES_ON)
		status = wait_and_handle(&r);
	make_cooked(&r);
	bunker_attachment_close(r.attachment);
	close(r.signal_fd);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return status;
}
