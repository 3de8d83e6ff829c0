/*
 * One output stream of a process: read into a ring with absolute offsets, sent as the front takes
 * it, kept until the front has acknowledged it. A full ring stops the reading, so the process
 * waits.
 *
 * The stream ends with the main process: what it had written is still ours, and what others write
 * into the same pipe afterwards is read and dropped, so that nobody gets SIGPIPE for outliving its
 * parent.
 */
#include "init/init.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* More than the kernel keeps between slave and master. */
#define TERMINAL_LEFT_MAX (256u * 1024)

static uint64_t stream_space(const struct stream *s)
{
	uint64_t space = FRAME_RING - (s->end - s->acked);
	return s->process->exited && s->left < space ? s->left : space;
}

static void discard_ready(struct source *source, uint32_t events)
{
	static char scratch[16 * 1024];
	(void)events;
	ssize_t n = read(source->fd, scratch, sizeof scratch);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		loop_close(source);
		free(source);
	}
}

/* The pipe outlives the process: background processes still write to it. */
static void stream_leave_to_background(struct stream *s)
{
	struct source *rest = calloc(1, sizeof *rest);
	int fd = rest ? dup(s->source.fd) : -1;
	loop_close(&s->source);
	if (fd < 0) {
		free(rest);
		return;
	}
	*rest = (struct source){.fd = fd, .ready = discard_ready};
	if (loop_watch(rest, EPOLLIN) < 0) {
		loop_close(rest);
		free(rest);
	}
}

static void init_output_stream_finish(struct stream *s, bool at_end)
{
	s->done = true;
	if (s->terminal) {
		/* Closing the master hangs the terminal up: remaining processes get SIGHUP. */
		loop_close(&s->source);
		input_close(s->process);
	} else if (at_end) {
		loop_close(&s->source);
	} else {
		stream_leave_to_background(s);
	}
}

/* Most streams stay empty, and end: memory is mapped for those that do not. */
static bool stream_has_ring(struct stream *s)
{
	if (!s->ring) {
		void *ring = mmap(NULL, FRAME_RING, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (ring == MAP_FAILED)
			return false;
		/* It is no business of a worker's. */
		madvise(ring, FRAME_RING, MADV_DONTFORK);
		s->ring = ring;
	}
	return true;
}

static ssize_t stream_read(struct stream *s, size_t max)
{
	static char first[4096];
	if (s->ring)
		return read(s->source.fd, s->ring + s->end % FRAME_RING, max);
	ssize_t n = read(s->source.fd, first, max < sizeof first ? max : sizeof first);
	if (n <= 0)
		return n;
	if (!stream_has_ring(s)) {
		errno = ENOMEM;
		return -1;
	}
	memcpy(s->ring + s->end % FRAME_RING, first, (size_t)n);
	return n;
}

/* Reads once into the free part of the ring. */
static void stream_ready(struct source *source, uint32_t events)
{
	struct stream *s = (struct stream *)source;
	(void)events;
	uint64_t space = stream_space(s);
	size_t at = s->end % FRAME_RING;
	ssize_t n = stream_read(s, FRAME_RING - at < space ? FRAME_RING - at : (size_t)space);
	if (n > 0) {
		s->end += (uint64_t)n;
		if (s->process->exited)
			s->left -= (uint64_t)n;
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR) ||
		   (s->terminal && s->process->exited && errno == EAGAIN)) {
		init_output_stream_finish(s, true);
		return;
	}
	if (s->process->exited && s->left == 0)
		init_output_stream_finish(s, false);
	else if (stream_space(s) == 0)
		loop_watch(&s->source, 0);
}

void stream_open(struct process *p, unsigned index, int fd)
{
	struct stream *s = &p->streams[index];
	s->process = p;
	s->terminal = p->start_flags & FRAME_START_TERMINAL;
	s->source = (struct source){.fd = fd, .ready = stream_ready};
	if (fd < 0)
		s->done = true;
	else
		loop_watch(&s->source, EPOLLIN);
}

/*
 * A terminal does not say how much its process left there, but a read that would wait has pushed
 * through all that was written before. So it is read until then; nothing announces that moment, and
 * what background processes write meanwhile is bounded.
 */
static void stream_drain_terminal(struct stream *s)
{
	while (!s->done && stream_space(s) > 0)
		stream_ready(&s->source, EPOLLIN);
}

void stream_main_exited(struct stream *s)
{
	int left = 0;
	if (s->done)
		return;
	if (s->terminal) {
		s->left = TERMINAL_LEFT_MAX;
		stream_drain_terminal(s);
		return;
	}
	ioctl(s->source.fd, FIONREAD, &left);
	s->left = (uint64_t)(left > 0 ? left : 0);
	if (s->left == 0)
		init_output_stream_finish(s, false);
}

int stream_ack(struct stream *s, uint64_t offset)
{
	if (offset > s->end)
		return -EPROTO;
	if (offset <= s->acked)
		return 0;
	s->acked = offset;
	if (s->sent < offset)
		s->sent = offset;
	if (s->done || stream_space(s) == 0)
		return 0;
	if (s->terminal && s->process->exited)
		stream_drain_terminal(s);
	else
		loop_watch(&s->source, EPOLLIN);
	return 0;
}

bool stream_collect(struct stream *s, unsigned index, struct buf *out)
{
	uint64_t pending = s->end - s->sent;
	if (pending == 0)
		return false;
	size_t at = s->sent % FRAME_RING;
	size_t run = FRAME_RING - at < pending ? FRAME_RING - at : (size_t)pending;
	if (run > FRAME_MAX_DATA)
		run = FRAME_MAX_DATA;
	frame_append(out, FRAME_OUTPUT, index, s->process->tag, s->sent, s->ring + at, run);
	s->sent += run;
	return true;
}

void stream_destroy(struct stream *s)
{
	if (!s->done)
		init_output_stream_finish(s, false);
	if (s->ring)
		munmap(s->ring, FRAME_RING);
	s->ring = NULL;
}
