/*
 * Somebody inside with the same user can stop or kill a worker, as any process of that user. One
 * that was stopped would keep its front waiting: it is killed.
 */
#include "init/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/schedule.h"
#include "init/files/files.h"
#include "init/spawn.h"

#define WORKERS_MAX 512
#define MEMORY_MAX  (512u << 20) /* of addresses: an expression can be made to need any amount */
#define CONTROL_FD  3

struct worker {
	struct worker *next;
	pid_t pid;
};

static struct worker *workers;
static size_t worker_count;

/* ---- in the worker ---- */

/* The first frame always fits the socket buffer. A closed connection needs no answer. */
static void send_started(int fd, const struct frame_started *started)
{
	autobuf answer = {0};
	frame_append(&answer, FRAME_STARTED, 0, 0, 0, started, sizeof *started);
	if (!answer.failed)
		(void)send(fd, answer.data, answer.len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/*
 * The worker sends STARTED itself: sent by init, it could arrive after the worker's first answer.
 */
__attribute__((noreturn)) static void worker_main(struct child *c, uint32_t flags)
{
	struct rlimit memory = {MEMORY_MAX, MEMORY_MAX};
	/* Changes the root while it may: afterwards it lacks the right, and so has no way out. */
	if ((flags & FRAME_WORKER_IN_VOLUME) && chroot(FRAME_VOLUME) < 0)
		_exit(127);
	child_become(c);
	/* It runs outside the sandbox's quota: whatever the host lets change users dump, nobody
	 * inside may trace it. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	prctl(PR_SET_NAME, "bunker-files", 0, 0, 0);
	schedule_promptly();
	setrlimit(RLIMIT_AS, &memory);
	send_started(CONTROL_FD, &(struct frame_started){.pid = getpid()});
	files_serve(CONTROL_FD, c->user.home);
	_exit(0);
}

/* ---- in init ---- */

static int fork_worker(struct worker *w, struct child *c, uint32_t flags)
{
	autoclose int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (nothing < 0)
		return -errno;
	for (int i = 0; i < 3; i++)
		c->stdio[i] = nothing;
	/* In init's own cgroup: it answers also when the sandbox has used up its time. */
	pid_t pid = spawn_fork(-1);
	if (pid == 0)
		worker_main(c, flags);
	if (pid < 0)
		return pid;
	w->pid = pid;
	spawn_prefer_to_kill(pid);
	return 0;
}

/* Returns the failed stage and its error; on success the worker is in the table. */
static struct frame_started worker_try_start(
	int fd, const struct frame_worker *how, const char *user)
{
	struct start_request rights = {.fixed.open_files = how->open_files, .cwd = "/"};
	struct child c = {.request = &rights, .stdio = {-1, -1, -1}, .control = fd};
	int r = user_lookup(user, &c.user);
	if (r < 0)
		return (struct frame_started){.stage = FRAME_STAGE_USER, .error = -r};
	struct worker *w = worker_count < WORKERS_MAX ? calloc(1, sizeof *w) : NULL;
	r = w ? fork_worker(w, &c, how->flags) : -EAGAIN;
	if (r < 0) {
		free(w);
		return (struct frame_started){.stage = FRAME_STAGE_RESOURCES, .error = -r};
	}
	w->next = workers;
	workers = w;
	worker_count++;
	return (struct frame_started){.pid = w->pid};
}

void worker_start(int fd, const struct frame_worker *how, const char *user)
{
	/* The worker waits for its front. The flag goes with the connection, also for us. */
	fcntl(fd, F_SETFL, 0);
	fd_widen(fd);
	struct frame_started started = worker_try_start(fd, how, user);
	if (started.stage != FRAME_STAGE_NONE)
		send_started(fd, &started);
	close(fd);
}

bool worker_reaped(pid_t pid, int status)
{
	struct worker **at = &workers;
	while (*at && (*at)->pid != pid)
		at = &(*at)->next;
	struct worker *w = *at;
	if (!w)
		return false;
	if (WIFSTOPPED(status)) {
		kill(pid, SIGKILL);
		return true;
	}
	*at = w->next;
	worker_count--;
	free(w);
	return true;
}
