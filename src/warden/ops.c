/*
 * The table of what the front may ask, and the loop that answers. One request is read, checked and
 * answered before the next: no request depends on another's half-done state. Two are only begun,
 * and answered when the kernel or a child is done with them: a kill that takes long, and a boot.
 */
#include "warden/warden.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/log.h"

#define CLEANUP_RETRY_MS 20
#define KILL_PATIENCE_MS 3
#define KILL_TIMEOUT_MS  5000
#define WAITING_MAX      64
#define BOOTING_MAX      16

/* A kill that is not answered yet. */
struct waiting {
	struct warden_request request;
	struct dying dying;
	struct warden_usage usage;
};

static struct waiting waiting[WAITING_MAX];
static size_t waiting_count;

/* Boots whose children are at work: meanwhile others are answered, and begun. */
struct booting {
	struct warden_request request;
	struct boot boot;
};

static struct booting booting[BOOTING_MAX];
static size_t booting_count;

static void warden_ops_op_hello(
	struct warden *w, const struct warden_request *q, struct warden_reply *a);
static void op_boot(struct warden *w, const struct warden_request *q, struct warden_reply *a);
static void op_limits(struct warden *w, const struct warden_request *q, struct warden_reply *a);
static void warden_ops_op_usage(
	struct warden *w, const struct warden_request *q, struct warden_reply *a);
static void op_kill(struct warden *w, const struct warden_request *q, struct warden_reply *a);
static void op_end(struct warden *w, const struct warden_request *q, struct warden_reply *a);
static void op_freeze(struct warden *w, const struct warden_request *q, struct warden_reply *a);
static void op_reclaim(struct warden *w, const struct warden_request *q, struct warden_reply *a);
static void warden_ops_op_next(
	struct warden *w, const struct warden_request *q, struct warden_reply *a);

static const struct {
	void (*run)(struct warden *w, const struct warden_request *q, struct warden_reply *a);
	bool needs_id;
	bool needs_limits;
} ops[WARDEN_OP_END] = {
	[WARDEN_HELLO] = {warden_ops_op_hello, false, false},
	[WARDEN_BOOT] = {op_boot, true, true},
	[WARDEN_LIMITS] = {op_limits, true, true},
	[WARDEN_USAGE] = {warden_ops_op_usage, true, false},
	[WARDEN_KILL] = {op_kill, true, false},
	[WARDEN_HALT] = {op_end, true, false},
	[WARDEN_DESTROY] = {op_end, true, false},
	[WARDEN_FREEZE] = {op_freeze, true, false},
	[WARDEN_RECLAIM] = {op_reclaim, true, false},
	[WARDEN_THAW] = {op_freeze, true, false},
	[WARDEN_NEXT] = {warden_ops_op_next, false, false},
};

/* ---- the operations ---- */

static void warden_ops_op_hello(
	struct warden *w, const struct warden_request *q, struct warden_reply *a)
{
	(void)q;
	a->flags = WARDEN_LAYER_MEMORY | WARDEN_LAYER_CPU | WARDEN_LAYER_PIDS |
		   WARDEN_LAYER_SECCOMP | WARDEN_LAYER_IDMAP;
	if (w->cgroup_mode != CGROUP_V1)
		a->flags |= WARDEN_LAYER_CGROUP_V2;
	if (w->cgroup_mode != CGROUP_V2)
		a->flags |= WARDEN_LAYER_CGROUP_V1;
}

static void tell_boot(const struct boot *b, bool failed, struct warden_reply *a)
{
	a->pid = b->pid;
	if (!failed)
		return;
	a->step = (uint32_t)b->step;
	a->error = b->error;
	if (b->error != EAGAIN) /* else the front asks again */
		log_error("boot failed", "sandbox", b->id, "step", warden_step_name(b->step),
			"error", strerror(b->error));
}

static void op_boot(struct warden *w, const struct warden_request *q, struct warden_reply *a)
{
	struct boot b = {.limits = q->limits, .boot_id = q->boot_id, .volumes = q->volumes};
	b.host_network = q->flags & WARDEN_BOOT_HOST_NETWORK;
	memcpy(b.id, q->id, sizeof b.id);
	memcpy(b.root, q->root, sizeof b.root);
	int r = boot_begin(w, &b);
	if (r == 0 && booting_count < BOOTING_MAX) {
		booting[booting_count++] = (struct booting){.request = *q, .boot = b};
		a->op = 0;
		return;
	}
	if (r == 0)
		r = boot_finish(w, &b);
	tell_boot(&b, r < 0, a);
}

static void op_limits(struct warden *w, const struct warden_request *q, struct warden_reply *a)
{
	a->error = -cgroup_set_limits(w, q->id, &q->limits);
	a->step = a->error ? WARDEN_STEP_CGROUP : WARDEN_STEP_NONE;
}

static void warden_ops_op_usage(
	struct warden *w, const struct warden_request *q, struct warden_reply *a)
{
	a->error = -cgroup_read_usage(w, q->id, &a->usage);
	a->step = a->error ? WARDEN_STEP_CGROUP : WARDEN_STEP_NONE;
}

/* Answers at once if the sandbox dies quickly, otherwise later, so that no other request waits. */
static void op_kill(struct warden *w, const struct warden_request *q, struct warden_reply *a)
{
	struct dying d;
	cgroup_read_usage(w, q->id, &a->usage);
	a->error = -cgroup_kill(w, q->id, &d);
	a->step = a->error ? WARDEN_STEP_KILL : WARDEN_STEP_NONE;
	if (!a->error && waiting_count < WAITING_MAX && !cgroup_is_dead(&d, KILL_PATIENCE_MS)) {
		waiting[waiting_count++] =
			(struct waiting){.request = *q, .dying = d, .usage = a->usage};
		a->op = 0;
		return;
	}
	if (!a->error && !cgroup_is_dead(&d, KILL_TIMEOUT_MS))
		a->error = ETIMEDOUT;
	boot_bury(w, &d);
}

static void op_end(struct warden *w, const struct warden_request *q, struct warden_reply *a)
{
	a->usage.cpu_us = cgroup_read_cpu(w, q->id);
	a->error = -boot_end(w, q->id, q->op == WARDEN_HALT);
	a->step = a->error ? WARDEN_STEP_KILL : WARDEN_STEP_NONE;
}

static void op_freeze(struct warden *w, const struct warden_request *q, struct warden_reply *a)
{
	a->error = -cgroup_freeze(w, q->id, q->op == WARDEN_FREEZE);
	a->step = a->error ? WARDEN_STEP_CGROUP : WARDEN_STEP_NONE;
}

static void op_reclaim(struct warden *w, const struct warden_request *q, struct warden_reply *a)
{
	int fd = cgroup_reclaim_file(w, q->id);
	a->error = fd < 0 ? -fd : 0;
	disk_reclaim(w, fd);
}

/* The smallest id above `after` that a directory names; best is only ever lowered. */
static void next_in(int dir_fd, const char *after, char best[ID_SIZE])
{
	int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *entry;
	while (dir && (entry = readdir(dir)) != NULL) {
		char name[ID_SIZE];
		size_t len = strcspn(entry->d_name, ".");
		if (len != ID_LEN)
			continue;
		memcpy(name, entry->d_name, ID_LEN);
		name[ID_LEN] = '\0';
		if (id_is_valid(name) && strcmp(name, after) > 0 &&
			(best[0] == '\0' || strcmp(name, best) < 0))
			memcpy(best, name, ID_SIZE);
	}
	if (dir)
		closedir(dir);
}

static void warden_ops_op_next(
	struct warden *w, const struct warden_request *q, struct warden_reply *a)
{
	a->id[0] = '\0';
	next_in(w->cgroup_v2_fd, q->id, a->id);
	next_in(w->disks.boxes_fd, q->id, a->id);
	next_in(w->run_fd, q->id, a->id);
	if (a->id[0] && disk_exists(w, a->id))
		a->flags |= WARDEN_FOUND_DISK;
	if (a->id[0])
		a->flags |= cgroup_state(w, a->id);
}

/* ---- checking and answering ---- */

static bool limits_are_sane(const struct warden_limits *l)
{
	return l->memory >= (4 << 20) && l->memory <= (INT64_C(1) << 46) && l->cpu >= 10 &&
	       l->cpu <= 1024000 && l->pids >= 2 && l->pids <= (1 << 22);
}

static bool volume_is_valid(const struct warden_volume *v)
{
	if (v->id[0] == '\0')
		return true;
	return v->id[ID_SIZE - 1] == '\0' && id_is_valid(v->id) && v->read_only <= 1 &&
	       warden_mount_is_valid(v->path);
}

static bool warden_ops_request_is_valid(const struct warden *w, const struct warden_request *q)
{
	if (q->op >= WARDEN_OP_END || !ops[q->op].run)
		return false;
	if (q->id[ID_SIZE - 1] != '\0' || (q->id[0] && !id_is_valid(q->id)))
		return false;
	if (ops[q->op].needs_id && !q->id[0])
		return false;
	if (q->root[ID_SIZE - 1] != '\0' || (q->root[0] && !id_is_valid(q->root)))
		return false;
	if ((q->flags & ~(uint32_t)WARDEN_BOOT_FLAGS) || (q->flags && !w->lends_network))
		return false;
	for (size_t i = 0; i < WARDEN_VOLUMES_MAX; i++)
		if (!volume_is_valid(&q->volumes[i]))
			return false;
	return !ops[q->op].needs_limits || limits_are_sane(&q->limits);
}

static void warden_ops_reply(int fd, const struct warden_reply *a)
{
	if (send(fd, a, sizeof *a, MSG_NOSIGNAL) < 0)
		log_warn("the front does not listen", "error", strerror(errno));
}

static void warden_ops_answer(struct warden *w, int fd, const struct warden_request *q)
{
	struct warden_reply a = {.op = q->op, .sequence = q->sequence};
	memcpy(a.id, q->id, sizeof a.id);
	FAULT_POINT();
	if (warden_ops_request_is_valid(w, q)) {
		ops[q->op].run(w, q, &a);
	} else {
		a.error = EINVAL;
		a.step = WARDEN_STEP_REQUEST;
	}
	FAULT_POINT();
	if (a.op)
		warden_ops_reply(fd, &a);
	FAULT_POINT();
}

static void answer_the_dead(struct warden *w, int fd)
{
	size_t kept = 0;
	for (size_t i = 0; i < waiting_count; i++) {
		const struct warden_request *q = &waiting[i].request;
		struct warden_reply a = {
			.op = q->op, .sequence = q->sequence, .usage = waiting[i].usage};
		if (!cgroup_is_dead(&waiting[i].dying, 0)) {
			waiting[kept++] = waiting[i];
			continue;
		}
		memcpy(a.id, q->id, sizeof a.id);
		boot_bury(w, &waiting[i].dying);
		if (a.op)
			warden_ops_reply(fd, &a);
	}
	waiting_count = kept;
}

static void answer_the_booted(struct warden *w, int fd)
{
	size_t kept = 0;
	for (size_t i = 0; i < booting_count; i++) {
		struct booting *at = &booting[i];
		struct warden_reply a = {.op = at->request.op, .sequence = at->request.sequence};
		if (!boot_has_ended(&at->boot)) {
			booting[kept++] = *at;
			continue;
		}
		memcpy(a.id, at->request.id, sizeof a.id);
		tell_boot(&at->boot, boot_finish(w, &at->boot) < 0, &a);
		FAULT_POINT();
		if (a.op)
			warden_ops_reply(fd, &a);
		FAULT_POINT();
	}
	booting_count = kept;
}

/* Reaps every child but the front, whose exit status the caller needs. */
static void warden_ops_reap(struct warden *w, pid_t front)
{
	siginfo_t info;
	for (;;) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0 ||
			info.si_pid == front)
			return;
		waitpid(info.si_pid, NULL, 0);
		if (w->child_ended)
			w->child_ended(w->child_ended_arg, info.si_pid);
	}
}

/* Waits for a request with the signals open that are blocked elsewhere, so that none is missed. */
static bool wait_for_request(int fd, bool cleanups)
{
	struct pollfd p[1 + WAITING_MAX + BOOTING_MAX] = {{.fd = fd, .events = POLLIN}};
	size_t count = 1;
	struct timespec retry = {.tv_nsec = CLEANUP_RETRY_MS * 1000000L};
	sigset_t none;
	sigemptyset(&none);
	for (size_t i = 0; i < waiting_count; i++)
		p[count++] = (struct pollfd){.fd = waiting[i].dying.pidfd, .events = POLLIN};
	for (size_t i = 0; i < booting_count; i++)
		p[count++] = (struct pollfd){.fd = booting[i].boot.report_fd, .events = POLLIN};
	return ppoll(p, count, cleanups ? &retry : NULL, &none) > 0 && p[0].revents;
}

void warden_serve(struct warden *w, int fd, pid_t front, const volatile bool *stop)
{
	bool told = false, cleanups = false;
	/* Requests of an earlier front are carried out, but not answered to this one. */
	for (size_t i = 0; i < waiting_count; i++)
		waiting[i].request.op = 0;
	for (size_t i = 0; i < booting_count; i++)
		booting[i].request.op = 0;
	for (;;) {
		struct warden_request q;
		bool requested = wait_for_request(fd, cleanups);
		if (*stop && !told) {
			kill(front, SIGTERM);
			told = true;
		}
		if (requested) {
			ssize_t size = recv(fd, &q, sizeof q, 0);
			if (size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN))
				return;
			if (size == (ssize_t)sizeof q)
				warden_ops_answer(w, fd, &q);
		}
		answer_the_dead(w, fd);
		answer_the_booted(w, fd);
		cleanups = boot_retry_cleanups(w);
		warden_ops_reap(w, front);
	}
}
