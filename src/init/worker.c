/*
 * The protocol with a worker is one packet each way over a socket pair: directory, home and
 * arguments, with the read end of stdin if there is one; back comes an errno. Stdout and stderr are
 * pipes that the worker keeps: what is in them when the answer comes belongs to the job.
 *
 * A worker that ends without an answer (killed, or by its own exit) is reported by its exit status.
 * Somebody inside with the same user can stop or kill it, as any process of that user; a stopped
 * one is told to go on with each job.
 */
#include "init/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "init/spawn.h"

#define JOB_MAX       (64u * 1024)
#define JOB_ARGUMENTS 256
#define IDLE_MAX      4
#define IDLE_US       (30 * 1000000ll)
#define JOBS_MAX      10000 /* then it makes place for a fresh one */
#define PIPE_SIZE     (256 * 1024)

struct worker {
	struct worker *next;
	pid_t pid;
	struct user user;
	uint32_t open_files;
	struct cgroup cgroup;
	struct source control;
	int output_fd[FRAME_STREAMS];
	struct process *job;
	bool busy; /* from the hand-over until its release */
	bool dead;
	unsigned jobs;
	int64_t idle_until_us;
};

static struct worker *workers;

/* ---- in the worker ---- */

struct job {
	int stdin_fd;
	const char *cwd, *home;
	const char *argv[JOB_ARGUMENTS + 1];
};

#define CONTROL_FD 3
#define NULL_FD    4

static int stdin_of(struct msghdr *m)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	int fd = -1;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof fd);
	return fd;
}

/* The strings are whole: nobody but init writes to this socket. */
static bool receive_job(struct job *ret)
{
	static char packet[JOB_MAX];
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec data = {packet, sizeof packet};
	struct msghdr m = {.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof control};
	ssize_t n = recvmsg(CONTROL_FD, &m, 0);
	size_t argc = 0;
	if (n <= 0)
		return false;
	ret->stdin_fd = stdin_of(&m);
	ret->cwd = packet;
	ret->home = packet + strlen(packet) + 1;
	for (const char *s = ret->home + strlen(ret->home) + 1; s < packet + n; s += strlen(s) + 1)
		ret->argv[argc++] = s;
	ret->argv[argc] = NULL;
	return true;
}

static int run_job(const struct job *job)
{
	/* A home that is missing is no reason not to work; a directory that was asked for is. */
	if (chdir(job->cwd[0] ? job->cwd : job->home) < 0 && (job->cwd[0] || chdir("/") < 0))
		return errno;
	if (!child_is_inside())
		return EACCES;
	return builtin_run(job->argv);
}

__attribute__((noreturn)) static void worker_main(void)
{
	struct job job;
	prctl(PR_SET_NAME, "bunker-files", 0, 0, 0);
	while (receive_job(&job)) {
		dup2(job.stdin_fd >= 0 ? job.stdin_fd : NULL_FD, 0);
		syscall(SYS_close_range, NULL_FD + 1u, ~0u, 0u);
		int32_t status = run_job(&job);
		/* Nothing of this job is left for the next. */
		dup2(NULL_FD, 0);
		syscall(SYS_close_range, NULL_FD + 1u, ~0u, 0u);
		umask(022);
		if (send(CONTROL_FD, &status, sizeof status, 0) != (ssize_t)sizeof status)
			break;
	}
	_exit(0);
}

/* ---- in init: one worker ---- */

static void worker_free(struct worker *w)
{
	for (struct worker **at = &workers; *at; at = &(*at)->next) {
		if (*at == w) {
			*at = w->next;
			break;
		}
	}
	loop_close(&w->control);
	for (unsigned i = 0; i < FRAME_STREAMS; i++)
		if (w->output_fd[i] >= 0)
			close(w->output_fd[i]);
	if (w->cgroup.number)
		cgroup_release(&w->cgroup);
	free(w);
}

static void finish_job(struct worker *w, int code, int signal, const struct rusage *usage)
{
	struct process *p = take_ptr(w->job);
	if (p)
		process_finished(p, code, signal, usage);
}

/* One that ended is reported when it is reaped, and one that talks nonsense soon will be. */
static void control_ready(struct source *s, uint32_t events)
{
	struct worker *w = (struct worker *)((char *)s - offsetof(struct worker, control));
	int32_t status;
	(void)events;
	ssize_t n = recv(s->fd, &status, sizeof status, MSG_DONTWAIT);
	if (n == (ssize_t)sizeof status && w->job) {
		finish_job(w, status & 0xff, 0, NULL);
	} else if (n >= 0 || errno != EAGAIN) {
		loop_watch(s, 0);
		worker_kill(w);
	}
}

static int open_channels(struct worker *w, struct child *c)
{
	int pair[2], p[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	w->control = (struct source){.fd = pair[0], .ready = control_ready};
	c->control = pair[1];
	c->stdio[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (c->stdio[0] < 0)
		return -errno;
	for (unsigned i = 0; i < FRAME_STREAMS; i++) {
		if (pipe2(p, O_CLOEXEC) < 0)
			return -errno;
		w->output_fd[i] = p[0];
		c->stdio[i + 1] = p[1];
		fcntl(p[0], F_SETFL, O_NONBLOCK);
	}
	fcntl(w->output_fd[FRAME_STDOUT], F_SETPIPE_SZ, PIPE_SIZE);
	return 0;
}

static int fork_worker(struct worker *w, struct child *c)
{
	autoclose int cgroup_fd = cgroup_take(&w->cgroup);
	if (cgroup_fd < 0)
		return cgroup_fd;
	pid_t pid = spawn_fork(cgroup_fd);
	if (pid == 0) {
		child_become(c);
		dup2(0, NULL_FD);
		worker_main();
	}
	if (pid < 0)
		return pid;
	w->pid = pid;
	spawn_prefer_to_kill(pid);
	return loop_watch(&w->control, EPOLLIN);
}

static int worker_create(
	const struct start_request *request, const struct user *u, struct worker **ret)
{
	struct start_request rights = {.fixed.flags = FRAME_START_BUILTIN, .cwd = "/"};
	struct child c = {.request = &rights, .user = *u, .stdio = {-1, -1, -1}, .control = -1};
	struct worker *w = calloc(1, sizeof *w);
	if (!w)
		return -ENOMEM;
	rights.fixed.open_files = request->fixed.open_files;
	*w = (struct worker){.user = *u,
		.open_files = request->fixed.open_files,
		.control.fd = -1,
		.output_fd = {-1, -1}};
	w->next = workers;
	workers = w;
	int r = open_channels(w, &c);
	if (r == 0)
		r = fork_worker(w, &c);
	spawn_close(c.stdio, 3);
	spawn_close(&c.control, 1);
	if (r < 0 && w->pid > 0)
		worker_kill(w);
	if (r < 0)
		worker_free(w);
	else
		*ret = w;
	return r;
}

/* ---- in init: jobs ---- */

static bool has_rights_of(const struct worker *w, const struct user *u, uint32_t open_files)
{
	return w->user.uid == u->uid && w->user.gid == u->gid && w->open_files == open_files &&
	       w->user.group_count == u->group_count &&
	       memcmp(w->user.groups, u->groups, (size_t)u->group_count * sizeof u->groups[0]) == 0;
}

static struct worker *find_idle(const struct user *u, uint32_t open_files)
{
	for (struct worker *w = workers; w; w = w->next)
		if (!w->busy && !w->dead && !w->cgroup.killed && has_rights_of(w, u, open_files))
			return w;
	return NULL;
}

static int encode_job(const struct start_request *request, const struct user *u, struct buf *out)
{
	buf_append(out, request->cwd, strlen(request->cwd) + 1);
	buf_append(out, u->home, strlen(u->home) + 1);
	for (const char **s = request->argv; *s; s++)
		buf_append(out, *s, strlen(*s) + 1);
	if (out->len > JOB_MAX || request->fixed.argc > JOB_ARGUMENTS)
		return -E2BIG;
	return out->failed ? -ENOMEM : 0;
}

static int send_job(struct worker *w, const struct buf *job, int stdin_fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec data = {job->data, job->len};
	struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1};
	if (stdin_fd >= 0) {
		m.msg_control = control;
		m.msg_controllen = sizeof control;
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof stdin_fd)};
		memcpy(CMSG_DATA(c), &stdin_fd, sizeof stdin_fd);
	}
	kill(w->pid, SIGCONT);
	return sendmsg(w->control.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int open_input(int *theirs, int *ours)
{
	int p[2];
	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	*theirs = p[0];
	*ours = p[1];
	fcntl(p[1], F_SETFL, O_NONBLOCK);
	fcntl(p[1], F_SETPIPE_SZ, PIPE_SIZE);
	return 0;
}

int worker_start(
	const struct start_request *request, struct worker **worker, struct spawn_result *ret)
{
	struct user u;
	autobuf job = {0};
	autoclose int theirs = -1, ours = -1;
	*ret = (struct spawn_result){.stage = FRAME_STAGE_USER};
	int r = user_lookup(request->user, &u);
	if (r < 0)
		return r;
	ret->stage = FRAME_STAGE_RESOURCES;
	r = encode_job(request, &u, &job);
	if (r == 0 && (request->fixed.flags & FRAME_START_STDIN))
		r = open_input(&theirs, &ours);
	struct worker *w = r == 0 ? find_idle(&u, request->fixed.open_files) : NULL;
	if (r == 0 && !w)
		r = worker_create(request, &u, &w);
	if (r == 0)
		r = send_job(w, &job, theirs);
	if (r < 0)
		return r; /* a worker that cannot be reached is dead, and will be reaped */
	w->busy = true;
	w->jobs++;
	ret->stage = FRAME_STAGE_NONE;
	ret->pid = w->pid;
	ret->stdin_fd = take_fd(&ours);
	memcpy(ret->output_fd, w->output_fd, sizeof ret->output_fd);
	*worker = w;
	return 0;
}

void worker_bind(struct worker *w, struct process *p)
{
	w->job = p;
}

void worker_kill(struct worker *w)
{
	cgroup_kill(&w->cgroup);
}

static bool is_worth_keeping(const struct worker *w)
{
	size_t idle = 0;
	for (const struct worker *other = workers; other; other = other->next)
		idle += !other->busy && !other->cgroup.killed;
	return idle < IDLE_MAX && w->jobs < JOBS_MAX && !w->cgroup.killed;
}

void worker_release(struct worker *w)
{
	bool keep = is_worth_keeping(w) && !w->job;
	w->job = NULL;
	w->busy = false;
	if (w->dead)
		worker_free(w);
	else if (keep)
		w->idle_until_us = clock_monotonic_us() + IDLE_US;
	else
		worker_kill(w);
}

/* What it left in its pipes is read first, if it had a job. */
bool worker_reaped(pid_t pid, int status, const struct rusage *usage)
{
	struct worker *w = workers;
	while (w && (w->pid != pid || w->dead))
		w = w->next;
	if (!w)
		return false;
	w->dead = true;
	loop_watch(&w->control, 0);
	if (w->job)
		finish_job(w, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
			WIFSIGNALED(status) ? WTERMSIG(status) : 0, usage);
	else if (!w->busy)
		worker_free(w);
	return true;
}

int64_t worker_check_idle(void)
{
	int64_t now = clock_monotonic_us(), next = 0;
	for (struct worker *w = workers; w; w = w->next) {
		if (w->busy || w->dead || w->cgroup.killed)
			continue;
		if (w->idle_until_us <= now)
			worker_kill(w);
		else if (next == 0 || w->idle_until_us < next)
			next = w->idle_until_us;
	}
	return next;
}
