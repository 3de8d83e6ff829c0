/*
 * The minder of a code interpreter: a process of init's own code, with the user's rights, that
 * stands between init and the interpreter that runs the user's code. Inside, an interpreter is
 * given
 *
 *     0  nothing          1, 2  pipes for what user code writes
 *     3  commands         4     a pipe for its messages
 *
 * and the minder puts what comes out of the three pipes into one stream of packets (wire/frame.h),
 * so that the order is kept: what was printed before a message was sent comes before it. That is
 * why the pipes are not read by the interpreter itself: user code that prints while it blocks the
 * interpreter would wait for itself.
 *
 * SIGINT is passed on to the interpreter and its process group. The minder ends with the
 * interpreter, with its exit status; it never waits for anybody but who reads its packets, and does
 * not read on while they wait: so a slow reader slows the code.
 */
#include "init/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_STARTED 127

struct minder {
	pid_t interpreter;
	int signals;
	int ends[FRAME_CHANNELS]; /* pipes to read; -1: at end of file */
	/*
	 * Set when messages arrive: bytes written before them and not read yet. These are read
	 * first, then the messages, even if output goes on.
	 */
	bool owing;
	int owed[FRAME_CHANNELS];
	char packet[FRAME_PACKET_HEADER + FRAME_PACKET_MAX];
	size_t len, sent;
	bool heard; /* a signal was passed on, but not reported yet */
	bool interpreter_gone;
	int status;
};

/* ---- the interpreter ---- */

static void become_interpreter(const struct child *c, int outputs[FRAME_CHANNELS])
{
	int nothing = open("/dev/null", O_RDONLY);
	const int wanted[5] = {nothing, outputs[FRAME_CHANNEL_STDOUT],
		outputs[FRAME_CHANNEL_STDERR], STDIN_FILENO, outputs[FRAME_CHANNEL_MESSAGES]};
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setsid();
	int parked[5]; /* above the numbers that are given out */
	for (int i = 0; i < 5; i++)
		parked[i] = fcntl(wanted[i], F_DUPFD_CLOEXEC, 5);
	for (int i = 0; i < 5; i++)
		if (dup2(parked[i], i) < 0)
			_exit(NOT_STARTED);
	syscall(SYS_close_range, 5u, ~0u, 0u);
	child_exec(c);
	_exit(NOT_STARTED);
}

static int start_interpreter(struct minder *k, const struct child *c)
{
	int outputs[FRAME_CHANNELS];
	for (int i = 0; i < FRAME_CHANNELS; i++) {
		int p[2];
		if (pipe2(p, O_CLOEXEC) < 0)
			return -errno;
		k->ends[i] = p[0];
		outputs[i] = p[1];
		fcntl(p[0], F_SETFL, O_NONBLOCK);
	}
	k->interpreter = fork();
	if (k->interpreter == 0)
		become_interpreter(c, outputs);
	spawn_close(outputs, FRAME_CHANNELS);
	/*
	 * Closes our copy, so that the writer of commands sees when the interpreter stops reading.
	 */
	close(STDIN_FILENO);
	return k->interpreter < 0 ? -errno : 0;
}

/* ---- packets ---- */

static void minder_pack(struct minder *k, unsigned channel, size_t len)
{
	uint32_t header = (uint32_t)channel << 24 | (uint32_t)len;
	memcpy(k->packet, &header, sizeof header);
	k->len = FRAME_PACKET_HEADER + len;
	k->sent = 0;
}

/* Reads at most max bytes of one channel; false when there was nothing. */
static bool minder_take(struct minder *k, unsigned channel, size_t max)
{
	size_t room = max < FRAME_PACKET_MAX ? max : FRAME_PACKET_MAX;
	ssize_t n = read(k->ends[channel], k->packet + FRAME_PACKET_HEADER, room);
	if (n > 0) {
		minder_pack(k, channel, (size_t)n);
		return true;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		close(k->ends[channel]);
		k->ends[channel] = -1;
	}
	return false;
}

static int minder_unread(const struct minder *k, unsigned channel)
{
	int n = 0;
	if (k->ends[channel] >= 0)
		ioctl(k->ends[channel], FIONREAD, &n);
	return n;
}

static void settle_debts(struct minder *k)
{
	k->owing = true;
	for (unsigned i = 0; i < FRAME_CHANNELS; i++)
		k->owed[i] = minder_unread(k, i);
}

/* Takes the next packet of the owed bytes; output comes first. */
static bool take_owed(struct minder *k)
{
	for (unsigned i = 0; i < FRAME_CHANNELS; i++) {
		if (k->owed[i] <= 0)
			continue;
		if (k->ends[i] >= 0 && minder_take(k, i, (size_t)k->owed[i])) {
			k->owed[i] -= (int)(k->len - FRAME_PACKET_HEADER);
			return true;
		}
		k->owed[i] = 0;
	}
	k->owing = false;
	return false;
}

static void take_next(struct minder *k, const struct pollfd *ready)
{
	if (!k->owing && ready[FRAME_CHANNEL_MESSAGES].revents)
		settle_debts(k);
	if (k->owing && take_owed(k))
		return;
	/* An interpreter that cannot say a word any more is as good as dead. */
	if (ready[FRAME_CHANNEL_MESSAGES].revents & POLLHUP &&
		!minder_take(k, FRAME_CHANNEL_MESSAGES, FRAME_PACKET_MAX))
		kill(k->interpreter, SIGKILL);
	if (k->len > 0)
		return;
	for (unsigned i = FRAME_CHANNEL_STDOUT; i <= FRAME_CHANNEL_STDERR; i++)
		if (ready[i].revents && minder_take(k, i, FRAME_PACKET_MAX))
			return;
}

static void minder_send_some(struct minder *k)
{
	ssize_t n = write(STDOUT_FILENO, k->packet + k->sent, k->len - k->sent);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		_exit(0); /* the reader is gone */
	if (n > 0)
		k->sent += (size_t)n;
	if (k->sent == k->len)
		k->sent = k->len = 0;
}

/* ---- the loop ---- */

static void handle_signals(struct minder *k)
{
	struct signalfd_siginfo info;
	while (read(k->signals, &info, sizeof info) == (ssize_t)sizeof info)
		if (info.ssi_signo != SIGCHLD) {
			kill(-k->interpreter, (int)info.ssi_signo);
			k->heard = true;
		}
	if (!k->interpreter_gone &&
		waitpid(k->interpreter, &k->status, WNOHANG) == k->interpreter) {
		k->interpreter_gone = true;
		settle_debts(k);
	}
}

/* While a packet is under way nothing else is read. */
static void wait_and_work(struct minder *k)
{
	struct pollfd p[FRAME_CHANNELS + 2];
	bool busy = k->len > 0;
	for (int i = 0; i < FRAME_CHANNELS; i++)
		p[i] = (struct pollfd){.fd = busy ? -1 : k->ends[i], .events = POLLIN};
	p[FRAME_CHANNELS] = (struct pollfd){.fd = k->signals, .events = POLLIN};
	p[FRAME_CHANNELS + 1] = (struct pollfd){.fd = busy ? STDOUT_FILENO : -1, .events = POLLOUT};
	if (poll(p, FRAME_CHANNELS + 2, k->owing && !busy ? 0 : -1) < 0)
		return;
	if (p[FRAME_CHANNELS].revents)
		handle_signals(k);
	if (busy) {
		minder_send_some(k);
	} else if (k->heard) {
		k->heard = false;
		minder_pack(k, FRAME_CHANNEL_HEARD, 0);
	} else if (!k->interpreter_gone) {
		take_next(k, p);
	} else if (!take_owed(k)) {
		_exit(WIFEXITED(k->status) ? WEXITSTATUS(k->status) : 128 + WTERMSIG(k->status));
	}
}

static void minder_watch_signals(struct minder *k)
{
	sigset_t mask;
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	signal(SIGPIPE, SIG_IGN);
	k->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (k->signals < 0)
		_exit(NOT_STARTED);
}

void minder_main(const struct child *c)
{
	static struct minder k;
	prctl(PR_SET_NAME, "bunker-minder", 0, 0, 0);
	minder_watch_signals(&k);
	fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
	if (start_interpreter(&k, c) < 0)
		_exit(NOT_STARTED);
	for (;;)
		wait_and_work(&k);
}
