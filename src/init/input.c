/*
 * Stdin of a process: at most FRAME_RING bytes wait here for it to read. What it took is told to
 * the front, which sends no more than the window allows.
 */
#include "init/init.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

void input_close(struct process *p)
{
	loop_close(&p->input);
	buf_finish(&p->input_buf);
}

/* The process has closed its stdin: pending and future input is accepted and dropped. */
static void input_deaf(struct process *p)
{
	p->input_taken = p->input_received;
	input_close(p);
	connection_send(FRAME_STDIN_CLOSED, p->tag, 0, NULL, 0);
}

/* Returns how many bytes were written; the rest has to wait. */
static size_t write_some(struct process *p, const char *data, size_t len)
{
	size_t done = 0;
	while (done < len) {
		ssize_t n = write(p->input.fd, data + done, len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			input_deaf(p);
		if (n < 0)
			break;
		done += (size_t)n;
		p->input_taken += (uint64_t)n;
		/* The key that ends a terminal's input is ours, and no byte of stdin. */
		if (p->input_taken > p->input_received)
			p->input_taken = p->input_received;
	}
	return done;
}

static bool is_terminal(const struct process *p)
{
	return p->start_flags & FRAME_START_TERMINAL;
}

static void input_settle(struct process *p)
{
	connection_send(FRAME_STDIN_ACK, p->tag, p->input_taken, NULL, 0);
	if (p->input.fd < 0)
		return;
	if (p->input_buf.len == 0 && p->input_ended && !is_terminal(p))
		input_close(p);
	else
		loop_watch(&p->input, p->input_buf.len ? EPOLLOUT : 0);
}

static void init_input_ready(struct source *source, uint32_t events)
{
	struct process *p = (struct process *)((char *)source - offsetof(struct process, input));
	(void)events;
	size_t n = write_some(p, p->input_buf.data, p->input_buf.len);
	if (p->input.fd >= 0)
		buf_consume(&p->input_buf, n);
	input_settle(p);
}

void input_open(struct process *p, int fd)
{
	p->input = (struct source){.fd = fd, .ready = init_input_ready};
}

int input_receive(struct process *p, uint64_t offset, const char *data, size_t len)
{
	if (offset != p->input_received || p->input_ended || p->input_buf.len + len > FRAME_RING)
		return -EPROTO;
	p->input_received += len;
	if (p->input.fd < 0) {
		p->input_taken = p->input_received;
	} else {
		size_t n = p->input_buf.len == 0 ? write_some(p, data, len) : 0;
		if (p->input.fd >= 0)
			buf_append(&p->input_buf, data + n, len - n);
	}
	input_settle(p);
	return 0;
}

void input_end(struct process *p)
{
	if (p->input_ended)
		return;
	p->input_ended = true;
	if (p->input.fd < 0)
		return;
	if (is_terminal(p)) {
		/* A terminal has no end of its own: a key says it. */
		char key = terminal_end_character(p->input.fd);
		if (p->input_buf.len > 0 || write(p->input.fd, &key, 1) < 0) {
			buf_append_char(&p->input_buf, key);
			loop_watch(&p->input, EPOLLOUT);
		}
	} else if (p->input_buf.len == 0) {
		input_close(p);
	}
}
