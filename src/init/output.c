/*
 * One output stream of a process: read into a ring with absolute offsets, sent as the front takes
 * it, kept until the front has acknowledged it. A full ring stops the reading, so the process
 * waits.
 *
 * The stream ends with the main process: what it had written is read at once, into a larger ring if
 * need be, so that an exit never waits for somebody who does not read. What others write into the
 * same pipe afterwards is read and dropped, so that nobody gets SIGPIPE for outliving its parent.
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
	return (s->ring ? s->size : FRAME_RING) - (s->end - s->acked);
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

/* Makes the ring hold at least `size` bytes; what is in it stays. */
static bool stream_grow(struct stream *s, size_t size)
{
	if (s->size >= size)
		return true;
	char *ring = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ring == MAP_FAILED)
		return false;
	/* Workers do not inherit the ring. */
	madvise(ring, size, MADV_DONTFORK);
	for (uint64_t at = s->acked, run; at < s->end; at += run) {
		uint64_t from = at % s->size, to = at % size;
		run = s->end - at;
		run = s->size - from < run ? s->size - from : run;
		run = size - to < run ? size - to : run;
		memcpy(ring + to, s->ring + from, run);
	}
	if (s->ring)
		munmap(s->ring, s->size);
	s->ring = ring;
	s->size = size;
	return true;
}

/*
 * Reads once, at most `max` bytes, into the free part of the ring. Most streams stay empty, and
 * end: memory is mapped for those that do not.
 */
static ssize_t stream_read(struct stream *s, size_t max)
{
	static char first[4096];
	size_t at = s->ring ? s->end % s->size : 0;
	size_t run = s->ring ? s->size - at : sizeof first;
	ssize_t n = read(s->source.fd, s->ring ? s->ring + at : first, run < max ? run : max);
	if (n <= 0)
		return n;
	if (!s->ring) {
		if (!stream_grow(s, FRAME_RING)) {
			errno = ENOMEM;
			return -1;
		}
		memcpy(s->ring + s->end % s->size, first, (size_t)n);
	}
	s->end += (uint64_t)n;
	return n;
}

static void stream_ready(struct source *source, uint32_t events)
{
	struct stream *s = (struct stream *)source;
	(void)events;
	ssize_t n = stream_read(s, stream_space(s));
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		init_output_stream_finish(s, true);
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
 * A pipe says how much is in it. A terminal does not, but a read that would wait has pushed through
 * all that was written before; what background processes write meanwhile is bounded.
 */
static size_t stream_left(const struct stream *s)
{
	int left = 0;
	if (s->terminal)
		return TERMINAL_LEFT_MAX;
	ioctl(s->source.fd, FIONREAD, &left);
	return left > 0 ? (size_t)left : 0;
}

void stream_main_exited(struct stream *s)
{
	if (s->done)
		return;
	for (size_t left = stream_left(s); left > 0;) {
		if (stream_space(s) == 0 && !stream_grow(s, s->size + left))
			break;
		size_t space = stream_space(s);
		ssize_t n = stream_read(s, left < space ? left : space);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 || (n < 0 && errno != EAGAIN)) {
			init_output_stream_finish(s, true);
			return;
		}
		if (n < 0)
			break;
		left -= (size_t)n;
	}
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
	if (!s->done && stream_space(s) > 0)
		loop_watch(&s->source, EPOLLIN);
	return 0;
}

static uint64_t stream_pending(const struct stream *s)
{
	uint64_t window = s->acked + FRAME_RING;
	return (s->end < window ? s->end : window) - s->sent;
}

bool stream_can_send(const struct stream *s)
{
	return stream_pending(s) > 0;
}

bool stream_collect(struct stream *s, unsigned index, struct buf *out)
{
	uint64_t pending = stream_pending(s);
	if (pending == 0)
		return false;
	size_t at = s->sent % s->size;
	size_t run = s->size - at < pending ? s->size - at : (size_t)pending;
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
		munmap(s->ring, s->size);
	s->ring = NULL;
}
