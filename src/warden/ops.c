/*
 * The table of what the front may ask, and the loop that answers. One request is read, checked and
 * answered before the next: no request depends on another's half-done state. Two are only begun,
 * and answered when the kernel or a child is done with them: a kill that takes long, and a boot.
 */
#include "warden/warden.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/id_list.h"
#include "base/log.h"

#define RETRY_MS         20
#define KILL_PATIENCE_MS 3
#define KILL_TIMEOUT_MS  5000
#define WAITING_MAX      64
#define BOOTING_MAX      16
#define UNSEEN_MAX       64

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

/* 0 or -errno, which is answered with the operation's step. One that is answered later, or has said
 * itself what is wrong, returns 0. */
typedef int operation(struct warden *w, const struct warden_request *q, struct warden_reply *a);
static operation op_boot, op_limits, warden_ops_op_usage, op_kill, op_end, op_freeze, op_reclaim,
	warden_ops_op_next;

static const struct {
	operation *run;
	bool needs_id;
	bool needs_limits;
	enum warden_step step;
} ops[WARDEN_OP_END] = {
	[WARDEN_BOOT] = {op_boot, true, true, WARDEN_STEP_NONE},
	[WARDEN_LIMITS] = {op_limits, true, true, WARDEN_STEP_CGROUP},
	[WARDEN_USAGE] = {warden_ops_op_usage, true, false, WARDEN_STEP_CGROUP},
	[WARDEN_KILL] = {op_kill, true, false, WARDEN_STEP_KILL},
	[WARDEN_HALT] = {op_end, true, false, WARDEN_STEP_KILL},
	[WARDEN_DESTROY] = {op_end, true, false, WARDEN_STEP_KILL},
	[WARDEN_FREEZE] = {op_freeze, true, false, WARDEN_STEP_CGROUP},
	[WARDEN_RECLAIM] = {op_reclaim, true, false, WARDEN_STEP_NONE},
	[WARDEN_THAW] = {op_freeze, true, false, WARDEN_STEP_CGROUP},
	[WARDEN_NEXT] = {warden_ops_op_next, false, false, WARDEN_STEP_NONE},
};

/* ---- the operations ---- */

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

static int op_boot(struct warden *w, const struct warden_request *q, struct warden_reply *a)
{
	struct boot b = {.limits = q->limits, .boot_id = q->boot_id, .volumes = q->volumes};
	memcpy(b.id, q->id, sizeof b.id);
	memcpy(b.root, q->root, sizeof b.root);
	int r = boot_begin(w, &b);
	if (r == 0 && booting_count < BOOTING_MAX) {
		booting[booting_count++] = (struct booting){.request = *q, .boot = b};
		a->op = 0;
		return 0;
	}
	if (r == 0)
		r = boot_finish(w, &b);
	tell_boot(&b, r < 0, a);
	return 0;
}

static int op_limits(struct warden *w, const struct warden_request *q, struct warden_reply *a)
{
	return cgroup_set_limits(w, q->id, &q->limits);
}

static int warden_ops_op_usage(
	struct warden *w, const struct warden_request *q, struct warden_reply *a)
{
	return cgroup_read_usage(w, q->id, &a->usage);
}

/* Answers at once if the sandbox dies quickly, otherwise later, so that no other request waits. */
static int op_kill(struct warden *w, const struct warden_request *q, struct warden_reply *a)
{
	struct dying d;
	cgroup_read_usage(w, q->id, &a->usage);
	int r = cgroup_kill(w, q->id, &d);
	if (r == 0 && waiting_count < WAITING_MAX && !cgroup_is_dead(&d, KILL_PATIENCE_MS)) {
		waiting[waiting_count++] =
			(struct waiting){.request = *q, .dying = d, .usage = a->usage};
		a->op = 0;
		return 0;
	}
	if (r == 0 && !cgroup_is_dead(&d, KILL_TIMEOUT_MS))
		r = -ETIMEDOUT;
	boot_bury(w, &d);
	return r;
}

static int op_end(struct warden *w, const struct warden_request *q, struct warden_reply *a)
{
	a->usage.cpu_us = cgroup_read_cpu(w, q->id);
	return boot_end(w, q->id, q->op == WARDEN_HALT);
}

static int op_freeze(struct warden *w, const struct warden_request *q, struct warden_reply *a)
{
	return cgroup_freeze(w, q->id, q->op == WARDEN_FREEZE);
}

static int op_reclaim(struct warden *w, const struct warden_request *q, struct warden_reply *a)
{
	int fd = cgroup_reclaim_file(w, q->id);
	disk_reclaim(w, fd);
	return fd < 0 ? fd : 0;
}

/* Everything is listed when the first is asked for, and let go of behind the last. */
static int warden_ops_op_next(
	struct warden *w, const struct warden_request *q, struct warden_reply *a)
{
	static struct id_list list;
	a->id[0] = '\0';
	if (!q->id[0] || !list.ids) {
		id_list_free(&list);
		id_list_add(&list, w->cgroup_v2_fd);
		id_list_add(&list, w->disks.boxes_fd);
		id_list_add(&list, w->run_fd);
		id_list_sort(&list);
	}
	const char *next = id_list_after(&list, q->id);
	if (!next) {
		id_list_free(&list);
		return 0;
	}
	memcpy(a->id, next, ID_SIZE);
	a->flags = (disk_exists(w, a->id) ? WARDEN_FOUND_DISK : 0u) | cgroup_state(w, a->id);
	if (a->flags & WARDEN_FOUND_PROCESSES)
		a->usage.oom_kills = cgroup_read_oom_kills(w, a->id);
	return 0;
}

/* ---- checking and answering ---- */

static bool warden_ops_request_is_valid(const struct warden_request *q)
{
	return q->op < WARDEN_OP_END && ops[q->op].run && warden_request_is_valid(q) &&
	       (q->id[0] || !ops[q->op].needs_id) &&
	       (!ops[q->op].needs_limits || warden_limits_are_valid(&q->limits));
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
	bool valid = warden_ops_request_is_valid(q);
	int r = valid ? ops[q->op].run(w, q, &a) : -EINVAL;
	if (r < 0) {
		a.error = -r;
		a.step = valid ? ops[q->op].step : WARDEN_STEP_REQUEST;
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

/* Returns whether it was reaped: not the front, whose exit status the caller needs. */
static bool reap_child(struct warden *w, pid_t pid, pid_t front)
{
	if (pid == 0 || pid == front || waitpid(pid, NULL, WNOHANG) != pid)
		return false;
	if (w->child_ended)
		w->child_ended(w->child_ended_arg, pid);
	return true;
}

/*
 * Reaps the child that the kernel has named. Others may have ended in the same moment, of which the
 * signal says nothing; but a look for them walks through all inits. It is taken when nothing is
 * asked for, or after UNSEEN_MAX ends. *unseen is how many have ended since the last look.
 */
static void warden_ops_reap(
	struct warden *w, int children_fd, pid_t front, bool quiet, unsigned *unseen)
{
	struct signalfd_siginfo ended;
	siginfo_t info = {0};
	if (read(children_fd, &ended, sizeof ended) == (ssize_t)sizeof ended) {
		reap_child(w, (pid_t)ended.ssi_pid, front);
		++*unseen;
	}
	if (*unseen < (quiet ? 1 : UNSEEN_MAX))
		return;
	*unseen = 0;
	do
		info.si_pid = 0;
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		reap_child(w, info.si_pid, front));
}

/* Waits for a request with the signals open that are blocked elsewhere, so that none is missed.
 * *quiet: nothing has come for a while, and nothing boots; without something left to do there is no
 * such while. */
static bool wait_for_request(
	int fd, int children_fd, const sigset_t *blocked, bool something_left, bool *quiet)
{
	struct pollfd p[2 + WAITING_MAX + BOOTING_MAX] = {
		{.fd = fd, .events = POLLIN}, {.fd = children_fd, .events = POLLIN}};
	size_t count = 2;
	struct timespec retry = {.tv_nsec = RETRY_MS * 1000000L};
	for (size_t i = 0; i < waiting_count; i++)
		p[count++] = (struct pollfd){.fd = waiting[i].dying.pidfd, .events = POLLIN};
	for (size_t i = 0; i < booting_count; i++)
		p[count++] = (struct pollfd){.fd = booting[i].boot.report_fd, .events = POLLIN};
	int ready = ppoll(p, count, something_left ? &retry : NULL, blocked);
	*quiet = ready == 0 && booting_count == 0;
	return ready > 0 && p[0].revents;
}

void warden_serve(struct warden *w, int fd, pid_t front, const volatile bool *stop)
{
	bool told = false, cleanups = false, quiet;
	unsigned unseen = 1; /* in the time of an earlier front */
	sigset_t ends;
	sigemptyset(&ends);
	sigaddset(&ends, SIGCHLD);
	autoclose int children = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
	/* Requests of an earlier front are carried out, but not answered to this one. */
	for (size_t i = 0; i < waiting_count; i++)
		waiting[i].request.op = 0;
	for (size_t i = 0; i < booting_count; i++)
		booting[i].request.op = 0;
	for (;;) {
		struct warden_request q;
		bool requested =
			wait_for_request(fd, children, &ends, cleanups || unseen > 0, &quiet);
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
		cleanups = boot_retry_cleanups(w, quiet);
		warden_ops_reap(w, children, front, quiet, &unseen);
	}
}
