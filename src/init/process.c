/*
 * The table of processes: their output rings, their stdin, their end.
 *
 * A process ends for the front when its main process has exited and every byte that it left in its
 * pipes has been sent. What it started in the background may go on holding the pipes: those bytes
 * are then read and dropped, so that nobody gets SIGPIPE for outliving its parent.
 */
#include "init/init.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

static struct process *processes;
static size_t process_count;

static struct process *process_find(uint64_t tag)
{
	for (struct process *p = processes; p; p = p->next)
		if (p->tag == tag && !p->forgotten)
			return p;
	return NULL;
}

/* ---- output ---- */

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

/* The pipe outlives the process: somebody in the background still writes to it. */
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

static void stream_finish(struct stream *s, bool at_end)
{
	s->done = true;
	if (at_end)
		loop_close(&s->source);
	else
		stream_leave_to_background(s);
}

/* Reads once into the free part of the ring. */
static void stream_fill(struct stream *s)
{
	uint64_t space = stream_space(s);
	size_t at = s->end % FRAME_RING;
	size_t run = FRAME_RING - at < space ? FRAME_RING - at : (size_t)space;
	ssize_t n = read(s->source.fd, s->ring + at, run);
	if (n > 0) {
		s->end += (uint64_t)n;
		if (s->process->exited)
			s->left -= (uint64_t)n;
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		stream_finish(s, true);
		return;
	}
	if (s->process->exited && s->left == 0)
		stream_finish(s, false);
	else if (stream_space(s) == 0)
		loop_watch(&s->source, 0);
}

static void stream_ready(struct source *source, uint32_t events)
{
	struct stream *s = (struct stream *)source;
	(void)events;
	if (!s->ring) {
		void *ring = mmap(NULL, FRAME_RING, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (ring == MAP_FAILED) {
			stream_finish(s, true);
			return;
		}
		s->ring = ring;
	}
	stream_fill(s);
}

static void stream_open(struct process *p, unsigned index, int fd)
{
	struct stream *s = &p->streams[index];
	s->process = p;
	s->source = (struct source){.fd = fd, .ready = stream_ready};
	loop_watch(&s->source, EPOLLIN);
}

/* The main process is gone: what it wrote is in the pipe by now, and that much is still ours. */
static void stream_main_exited(struct stream *s)
{
	int left = 0;
	if (s->done)
		return;
	ioctl(s->source.fd, FIONREAD, &left);
	s->left = (uint64_t)(left > 0 ? left : 0);
	if (s->left == 0)
		stream_finish(s, false);
}

int process_ack(uint64_t tag, unsigned stream, uint64_t offset)
{
	struct process *p = process_find(tag);
	if (!p)
		return 0;
	struct stream *s = &p->streams[stream];
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

static bool stream_collect(struct stream *s, unsigned index, struct buf *out)
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

static void collect_exit(struct process *p, struct buf *out)
{
	if (!p->exited || p->exit_sent)
		return;
	for (unsigned i = 0; i < FRAME_STREAMS; i++) {
		if (!p->streams[i].done || p->streams[i].sent < p->streams[i].end)
			return;
		p->exit.end[i] = p->streams[i].end;
	}
	frame_append(out, FRAME_EXIT, 0, p->tag, 0, &p->exit, sizeof p->exit);
	p->exit_sent = true;
}

void process_collect(struct buf *out, size_t limit)
{
	bool more = true;
	while (more && out->len < limit) {
		more = false;
		for (struct process *p = processes; p && out->len < limit; p = p->next) {
			if (p->forgotten)
				continue;
			for (unsigned i = 0; i < FRAME_STREAMS; i++)
				more |= stream_collect(&p->streams[i], i, out);
			collect_exit(p, out);
		}
	}
}

void process_announce_all(struct buf *out)
{
	for (struct process *p = processes; p; p = p->next) {
		if (p->forgotten)
			continue;
		struct frame_record record = {
			.pid = p->pid,
			.flags = p->start_flags,
			.started_ms = p->started_wall_ms,
		};
		memcpy(record.execution, p->execution, sizeof record.execution);
		for (unsigned i = 0; i < FRAME_STREAMS; i++) {
			p->streams[i].sent = p->streams[i].acked;
			record.acked[i] = p->streams[i].acked;
		}
		p->exit_sent = false;
		autobuf payload = {0};
		buf_append(&payload, &record, sizeof record);
		buf_append(&payload, p->command.data, p->command.len);
		frame_append(out, FRAME_RECORD, 0, p->tag, 0, payload.data, payload.len);
		if (p->input.fd >= 0)
			frame_append(out, FRAME_STDIN_ACK, 0, p->tag, p->input_received, NULL, 0);
	}
}

/* ---- stdin ---- */

static void input_close(struct process *p)
{
	loop_close(&p->input);
	buf_finish(&p->input_buf);
}

static void input_write(struct process *p)
{
	while (p->input.fd >= 0 && p->input_buf.len > 0) {
		ssize_t n = write(p->input.fd, p->input_buf.data, p->input_buf.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			/* It reads no more: what comes for it is taken and dropped. */
			p->input_taken = p->input_received;
			input_close(p);
			break;
		}
		p->input_taken += (uint64_t)n;
		buf_consume(&p->input_buf, (size_t)n);
	}
	connection_send(FRAME_STDIN_ACK, p->tag, p->input_taken, NULL, 0);
	if (p->input.fd < 0)
		return;
	if (p->input_buf.len == 0 && p->input_ended)
		input_close(p);
	else
		loop_watch(&p->input, p->input_buf.len ? EPOLLOUT : 0);
}

static void input_ready(struct source *source, uint32_t events)
{
	(void)events;
	input_write((struct process *)((char *)source - offsetof(struct process, input)));
}

int process_input(uint64_t tag, uint64_t offset, const char *data, size_t len)
{
	struct process *p = process_find(tag);
	if (!p)
		return 0;
	if (offset != p->input_received || p->input_ended || p->input_buf.len + len > FRAME_RING)
		return -EPROTO;
	p->input_received += len;
	if (p->input.fd < 0)
		p->input_taken = p->input_received;
	else
		buf_append(&p->input_buf, data, len);
	input_write(p);
	return 0;
}

void process_input_end(uint64_t tag)
{
	struct process *p = process_find(tag);
	if (!p)
		return;
	p->input_ended = true;
	if (p->input.fd >= 0 && p->input_buf.len == 0)
		input_close(p);
}

/* ---- life ---- */

/* Whole arguments, as many as fit. */
static void remember_command(struct process *p, const char *const *argv)
{
	for (; *argv; argv++) {
		size_t size = strlen(*argv) + 1;
		if (p->command.len + size > FRAME_MAX_COMMAND)
			break;
		buf_append(&p->command, *argv, size);
	}
}

static struct process *process_create(
	uint64_t tag, const struct start_request *request, const struct spawn_result *spawned)
{
	struct process *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->tag = tag;
	p->pid = spawned->pid;
	p->cgroup = spawned->cgroup;
	p->start_flags = request->fixed.flags;
	memcpy(p->execution, request->fixed.execution, sizeof p->execution);
	remember_command(p, request->argv);
	p->started_us = clock_monotonic_us();
	p->started_wall_ms = clock_wall_ms();
	uint64_t timeout_ms = request->fixed.timeout_ms;
	if (timeout_ms > 0 && timeout_ms < (uint64_t)INT64_MAX / 2000)
		p->deadline_us = p->started_us + (int64_t)timeout_ms * 1000;
	p->input = (struct source){.fd = spawned->stdin_fd, .ready = input_ready};
	for (unsigned i = 0; i < FRAME_STREAMS; i++)
		stream_open(p, i, spawned->output_fd[i]);
	p->next = processes;
	processes = p;
	process_count++;
	return p;
}

static void refuse_start(uint64_t tag, enum frame_stage stage, int error)
{
	struct frame_started started = {.stage = (int32_t)stage, .error = error};
	connection_send(FRAME_STARTED, tag, 0, &started, sizeof started);
}

void process_start(uint64_t tag, const struct start_request *request)
{
	struct spawn_result spawned;
	if (process_find(tag)) {
		refuse_start(tag, FRAME_STAGE_RESOURCES, EEXIST);
		return;
	}
	if (process_count >= INIT_MAX_PROCESSES) {
		refuse_start(tag, FRAME_STAGE_RESOURCES, EAGAIN);
		return;
	}
	if ((request->fixed.flags & FRAME_START_BUILTIN) && !builtin_is_known(request->argv[0])) {
		refuse_start(tag, FRAME_STAGE_EXEC, ENOSYS);
		return;
	}
	if (spawn_process(request, &spawned) < 0) {
		refuse_start(tag, spawned.stage, spawned.error);
		return;
	}
	if (!process_create(tag, request, &spawned)) {
		spawn_kill_cgroup(&spawned.cgroup);
		refuse_start(tag, FRAME_STAGE_RESOURCES, ENOMEM);
		return;
	}
	struct frame_started started = {.pid = spawned.pid};
	connection_send_later(FRAME_STARTED, tag, 0, &started, sizeof started);
}

static void process_exited(struct process *p, int status, const struct rusage *usage)
{
	struct frame_exit *x = &p->exit;
	p->exited = true;
	p->deadline_us = 0;
	x->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	x->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	x->max_rss_kib = (uint32_t)usage->ru_maxrss;
	x->cpu_us = (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000 +
		    (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
	x->duration_us = (uint64_t)(clock_monotonic_us() - p->started_us);
	input_close(p);
	for (unsigned i = 0; i < FRAME_STREAMS; i++)
		stream_main_exited(&p->streams[i]);
}

void process_reap(void)
{
	struct rusage usage;
	int status;
	pid_t pid;
	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
		for (struct process *p = processes; p; p = p->next)
			if (p->pid == pid && !p->exited)
				process_exited(p, status, &usage);
	}
	spawn_retry_releases();
}

void process_signal(uint64_t tag, int signal)
{
	struct process *p = process_find(tag);
	if (p && !p->exited && signal > 0 && signal < 65)
		kill(p->pid, signal);
}

void process_kill(uint64_t tag)
{
	struct process *p = process_find(tag);
	if (!p)
		return;
	if (!p->exited)
		p->exit.flags |= FRAME_EXIT_KILLED;
	spawn_kill_cgroup(&p->cgroup);
}

int64_t process_check_deadlines(void)
{
	int64_t now = clock_monotonic_us(), next = 0;
	for (struct process *p = processes; p; p = p->next) {
		if (p->deadline_us == 0)
			continue;
		if (p->deadline_us <= now) {
			p->exit.flags |= FRAME_EXIT_TIMED_OUT;
			p->deadline_us = 0;
			spawn_kill_cgroup(&p->cgroup);
		} else if (next == 0 || p->deadline_us < next) {
			next = p->deadline_us;
		}
	}
	return next;
}

void process_forget(uint64_t tag)
{
	struct process *p = process_find(tag);
	if (p && p->exited)
		p->forgotten = true;
}

static void process_destroy(struct process *p)
{
	for (unsigned i = 0; i < FRAME_STREAMS; i++) {
		if (!p->streams[i].done)
			stream_finish(&p->streams[i], false);
		if (p->streams[i].ring)
			munmap(p->streams[i].ring, FRAME_RING);
	}
	input_close(p);
	buf_finish(&p->command);
	spawn_release_cgroup(p->cgroup);
	free(p);
	process_count--;
}

void process_sweep(void)
{
	for (struct process **at = &processes; *at;) {
		struct process *p = *at;
		if (p->forgotten) {
			*at = p->next;
			process_destroy(p);
		} else {
			at = &p->next;
		}
	}
}
