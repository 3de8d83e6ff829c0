/*
 * The table of processes: how they start, what they are told, how they end.
 *
 * A process ends for the front when its main process has exited and every byte that it left in its
 * pipes has been sent. What it started in the background may go on.
 */
#include "init/init.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "init/worker.h"

static struct process *processes;
static size_t process_count;

static struct process *process_find(uint64_t tag)
{
	for (struct process *p = processes; p; p = p->next)
		if (p->tag == tag && !p->forgotten)
			return p;
	return NULL;
}

/* ---- to the front ---- */

static void collect_exit(struct process *p, struct buf *out)
{
	if (!p->exited || p->exit_sent)
		return;
	for (unsigned i = 0; i < FRAME_STREAMS; i++)
		if (stream_can_send(&p->streams[i]))
			return;
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

static void init_process_announce(struct process *p, struct buf *out)
{
	struct frame_process record = {
		.pid = p->pid,
		.start_flags = p->start_flags,
		.kind = p->kind,
		.flags = (p->input.fd >= 0 && !p->input_ended ? FRAME_PROCESS_INPUT_OPEN : 0u) |
			 (p->exited ? FRAME_PROCESS_EXITED : 0u),
		.started_ms = p->started_wall_ms,
		.timeout_ms = p->timeout_ms,
		.input_received = p->input_received,
		.input_taken = p->input_taken,
		.exit = p->exit,
	};
	memcpy(record.execution, p->execution, sizeof record.execution);
	for (unsigned i = 0; i < FRAME_STREAMS; i++) {
		p->streams[i].sent = p->streams[i].acked;
		record.acked[i] = p->streams[i].acked;
	}
	p->exit_sent = false;
	autobuf payload = {0};
	buf_append(&payload, &record, sizeof record);
	buf_append(&payload, p->description.data, p->description.len);
	frame_append(out, FRAME_PROCESS, 0, p->tag, 0, payload.data, payload.len);
}

void process_announce_all(struct buf *out)
{
	for (struct process *p = processes; p; p = p->next)
		if (!p->forgotten)
			init_process_announce(p, out);
}

/* ---- start ---- */

/* Keeps whole arguments, as many as fit. */
static void init_process_describe(struct process *p, const struct start_request *request)
{
	const char *const texts[] = {request->user, request->cwd, request->name};
	size_t left = FRAME_MAX_COMMAND;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		buf_append(&p->description, texts[i], strlen(texts[i]) + 1);
	for (const char *const *argv = request->argv; *argv; argv++) {
		size_t size = strlen(*argv) + 1;
		if (size > left)
			break;
		buf_append(&p->description, *argv, size);
		left -= size;
	}
}

static void process_add(struct process *p, uint64_t tag, const struct start_request *request,
	const struct spawn_result *spawned)
{
	const struct frame_start *fixed = &request->fixed;
	p->tag = tag;
	p->pid = spawned->pid;
	p->cgroup = spawned->cgroup;
	p->start_flags = fixed->flags;
	p->kind = fixed->kind;
	memcpy(p->execution, fixed->execution, sizeof p->execution);
	init_process_describe(p, request);
	p->timeout_ms = fixed->timeout_ms;
	if (p->timeout_ms > 0 && p->timeout_ms < (uint64_t)INT64_MAX / 2000)
		p->deadline_us = p->started_us + (int64_t)p->timeout_ms * 1000;
	input_open(p, spawned->stdin_fd);
	for (unsigned i = 0; i < FRAME_STREAMS; i++)
		stream_open(p, i, spawned->output_fd[i]);
	p->next = processes;
	processes = p;
	process_count++;
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
	struct process *p = calloc(1, sizeof *p);
	if (!p) {
		refuse_start(tag, FRAME_STAGE_RESOURCES, ENOMEM);
		return;
	}
	/* Taken before the spawn: by the time that returns, a short process may have ended. */
	p->started_us = clock_monotonic_us();
	p->started_wall_ms = clock_wall_ms();
	if (spawn_process(request, &spawned) < 0) {
		free(p);
		refuse_start(tag, spawned.stage, spawned.error);
		return;
	}
	process_add(p, tag, request, &spawned);
	struct frame_started started = {.pid = spawned.pid};
	if (request->fixed.flags & FRAME_START_PROMPT)
		connection_send(FRAME_STARTED, tag, 0, &started, sizeof started);
	else
		connection_send_later(FRAME_STARTED, tag, 0, &started, sizeof started);
}

/* ---- requests of the front ---- */

int process_input(uint64_t tag, uint64_t offset, const char *data, size_t len)
{
	struct process *p = process_find(tag);
	return p ? input_receive(p, offset, data, len) : 0;
}

void process_input_end(uint64_t tag)
{
	struct process *p = process_find(tag);
	if (p)
		input_end(p);
}

int process_ack(uint64_t tag, unsigned stream, uint64_t offset)
{
	struct process *p = process_find(tag);
	return p ? stream_ack(&p->streams[stream], offset) : 0;
}

int process_resize(uint64_t tag, uint64_t size)
{
	struct process *p = process_find(tag);
	uint64_t rows = size >> 16, columns = size & 0xffff;
	if (rows == 0 || columns == 0 || rows > FRAME_MAX_SIDE || columns > FRAME_MAX_SIDE)
		return -EPROTO;
	if (p && (p->start_flags & FRAME_START_TERMINAL) && p->input.fd >= 0)
		terminal_resize(p->input.fd, (unsigned)rows, (unsigned)columns);
	return 0;
}

void process_signal(uint64_t tag, int signal, unsigned scope)
{
	struct process *p = process_find(tag);
	if (!p || signal <= 0 || signal >= 65)
		return;
	if (scope == FRAME_TREE)
		cgroup_signal(&p->cgroup, signal);
	else if (!p->exited)
		kill(p->pid, signal);
}

/* SIGCONT follows, because a stopped process handles SIGTERM only when continued. */
void process_stop(uint64_t tag, uint64_t grace_ms)
{
	struct process *p = process_find(tag);
	if (!p)
		return;
	if (!p->exited)
		p->exit.flags |= FRAME_EXIT_STOPPED;
	cgroup_signal(&p->cgroup, SIGTERM);
	cgroup_signal(&p->cgroup, SIGCONT);
	int64_t grace_us = grace_ms < (uint64_t)INT64_MAX / 2000 ? (int64_t)grace_ms * 1000 : 0;
	int64_t kill_at = clock_monotonic_us() + grace_us;
	if (p->kill_at_us == 0 || kill_at < p->kill_at_us)
		p->kill_at_us = kill_at;
}

void process_kill(uint64_t tag)
{
	struct process *p = process_find(tag);
	if (!p)
		return;
	if (!p->exited)
		p->exit.flags |= FRAME_EXIT_KILLED;
	cgroup_kill(&p->cgroup);
}

void process_inspect(uint64_t tag)
{
	struct process *p = process_find(tag);
	autobuf status = {0};
	if (!p)
		return;
	inspect_process(p, &status);
	if (!status.failed)
		connection_send(FRAME_STATUS, tag, 0, status.data, status.len);
}

void process_forget(uint64_t tag)
{
	struct process *p = process_find(tag);
	if (p && p->exited)
		p->forgotten = true;
}

/* ---- end ---- */

static void process_exited(struct process *p, int status, const struct rusage *usage)
{
	struct frame_exit *x = &p->exit;
	p->exited = true;
	p->deadline_us = 0;
	x->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	x->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	x->max_rss_kib = (uint32_t)usage->ru_maxrss;
	x->cpu_us = cgroup_cpu_us(&p->cgroup);
	x->duration_us = (uint64_t)(clock_monotonic_us() - p->started_us);
	input_close(p);
	for (unsigned i = 0; i < FRAME_STREAMS; i++) {
		stream_main_exited(&p->streams[i]);
		x->end[i] = p->streams[i].end;
	}
}

void process_reap(void)
{
	struct rusage usage;
	int status;
	pid_t pid;
	while ((pid = wait4(-1, &status, WNOHANG | WUNTRACED, &usage)) > 0) {
		if (worker_reaped(pid, status) || WIFSTOPPED(status))
			continue;
		for (struct process *p = processes; p; p = p->next)
			if (p->pid == pid && !p->exited)
				process_exited(p, status, &usage);
	}
	cgroup_retry_releases();
}

static bool is_due(int64_t *at_us, int64_t now, int64_t *next)
{
	if (*at_us == 0)
		return false;
	if (*at_us <= now) {
		*at_us = 0;
		return true;
	}
	if (*next == 0 || *at_us < *next)
		*next = *at_us;
	return false;
}

static int64_t deadlines_stand_since_us; /* 0: they do not */

void process_pause_deadlines(void)
{
	if (deadlines_stand_since_us == 0)
		deadlines_stand_since_us = clock_monotonic_us();
}

void process_resume_deadlines(void)
{
	int64_t stood_us = clock_monotonic_us() - deadlines_stand_since_us;
	if (deadlines_stand_since_us == 0)
		return;
	for (struct process *p = processes; p; p = p->next) {
		if (p->started_us >= deadlines_stand_since_us)
			continue;
		p->deadline_us += p->deadline_us ? stood_us : 0;
		p->kill_at_us += p->kill_at_us ? stood_us : 0;
	}
	deadlines_stand_since_us = 0;
}

int64_t process_check_deadlines(void)
{
	int64_t now = clock_monotonic_us(), next = 0;
	if (deadlines_stand_since_us != 0)
		return 0;
	for (struct process *p = processes; p; p = p->next) {
		bool timed_out = is_due(&p->deadline_us, now, &next);
		if (timed_out)
			p->exit.flags |= FRAME_EXIT_TIMED_OUT;
		if (is_due(&p->kill_at_us, now, &next) || timed_out)
			cgroup_kill(&p->cgroup);
	}
	return next;
}

static void process_destroy(struct process *p)
{
	for (unsigned i = 0; i < FRAME_STREAMS; i++)
		stream_destroy(&p->streams[i]);
	input_close(p);
	buf_finish(&p->description);
	cgroup_release(&p->cgroup);
	free(p);
	process_count--;
}

/*
 * A stopped process stays listed until its cgroup is empty, so that its tree gets the grace period.
 */
void process_sweep(void)
{
	for (struct process **at = &processes; *at;) {
		struct process *p = *at;
		if (p->forgotten && (p->kill_at_us == 0 || cgroup_is_empty(&p->cgroup))) {
			*at = p->next;
			process_destroy(p);
		} else {
			at = &p->next;
		}
	}
}
