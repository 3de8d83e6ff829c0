/*
 * Bytes from one socket to another by splice, through a pipe that is held only while bytes are in
 * it. Pipes are kept for the next: as many as are quick to make anew are not worth keeping.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "egress/egress.h"

#define PIPES_KEPT      64
#define PIPE_WIDE       (256 * 1024)
#define PIPES_WIDE      64 /* of those, so that one user's share of pipe memory lasts */
#define CHUNK           (256 * 1024)
#define ROUNDS_PER_TURN 8

static int kept[PIPES_KEPT][2];
static unsigned kept_count, made_wide;

static int pipe_take(int pipe_fds[2])
{
	if (kept_count > 0) {
		kept_count--;
		pipe_fds[0] = kept[kept_count][0];
		pipe_fds[1] = kept[kept_count][1];
		return 0;
	}
	if (pipe2(pipe_fds, O_NONBLOCK | O_CLOEXEC) < 0) {
		pipe_fds[0] = pipe_fds[1] = -1;
		return -errno;
	}
	if (made_wide < PIPES_WIDE && fcntl(pipe_fds[1], F_SETPIPE_SZ, PIPE_WIDE) >= 0)
		made_wide++;
	return 0;
}

static void pipe_drop(int pipe_fds[2])
{
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void pipe_give_back(int pipe_fds[2])
{
	if (kept_count < PIPES_KEPT) {
		kept[kept_count][0] = pipe_fds[0];
		kept[kept_count++][1] = pipe_fds[1];
	} else {
		pipe_drop(pipe_fds);
	}
	pipe_fds[0] = pipe_fds[1] = -1;
}

void flow_init(struct flow *f)
{
	*f = (struct flow){.pipe = {-1, -1}};
}

void flow_release(struct flow *f)
{
	if (f->pipe[0] >= 0 && f->held == 0)
		pipe_give_back(f->pipe);
	else if (f->pipe[0] >= 0)
		pipe_drop(f->pipe);
	flow_init(f);
}

/* 1: there is something in the pipe; 0: nothing now, or the end. */
static int flow_fill(struct flow *f, int from, size_t most)
{
	if (f->held > 0)
		return 1;
	if (f->from_ended)
		return 0;
	if (f->pipe[0] < 0 && pipe_take(f->pipe) < 0)
		return -ENOBUFS;
	ssize_t n = splice(from, NULL, f->pipe[1], NULL, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n > 0)
		f->held = (size_t)n;
	if (n == 0)
		f->from_ended = true;
	return n > 0 ? 1 : n == 0 || errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static int flow_empty(struct flow *f, int to, uint64_t *moved)
{
	while (f->held > 0) {
		ssize_t n = splice(
			f->pipe[0], NULL, to, NULL, f->held, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		f->held -= (size_t)n;
		*moved += (uint64_t)n;
	}
	return 0;
}

enum relay_result flow_move(struct flow *f, int from, int to, size_t most, uint64_t *moved)
{
	const uint64_t end = *moved + most;
	int filled = 1;
	for (int i = 0; i < ROUNDS_PER_TURN && *moved < end; i++) {
		filled = flow_fill(f, from, end - *moved < CHUNK ? (size_t)(end - *moved) : CHUNK);
		if (filled < 0 || flow_empty(f, to, moved) < 0)
			return RELAY_BROKEN;
		if (f->held > 0)
			return RELAY_WAITS;
		if (filled == 0)
			break;
	}
	if (f->pipe[0] >= 0)
		pipe_give_back(f->pipe);
	return f->from_ended ? RELAY_ENDED : filled ? RELAY_AGAIN : RELAY_WAITS;
}
