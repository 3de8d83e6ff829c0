/*
 * The table of what the front may ask, and the loop that answers. What takes longer than a moment
 * is done by a child of its own, which sends the answer itself: a slow copy holds up nobody, and
 * copies that come together share one commit. The parent answers for a child that dies.
 */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/schedule.h"
#include "base/trim.h"
#include "wire/diff.h"

#define READERS_MAX    64
#define CHILDREN_MAX   16
#define TEND_US        500000
#define MEASURE_NICE   10
#define DROP_GROUPS_US (10 * 1000000)
#define EXPIRE_US      (INT64_C(60) * 1000000)
#define LIMIT_MAX      (INT64_C(1) << 50)

struct child {
	pid_t pid;
	struct keeper_request request;
};

static struct child children[CHILDREN_MAX];
static size_t child_count;
static pid_t readers[READERS_MAX]; /* comparisons that are being read */
static size_t reader_count;
static volatile sig_atomic_t child_ended;

static void keeper_ops_op_hello(
	struct keeper *k, const struct keeper_request *q, struct keeper_reply *a);
static void op_make(struct keeper *k, const struct keeper_request *q, struct keeper_reply *a);
static void op_limit(struct keeper *k, const struct keeper_request *q, struct keeper_reply *a);
static void op_keep(struct keeper *k, const struct keeper_request *q, struct keeper_reply *a);
static void op_restore(struct keeper *k, const struct keeper_request *q, struct keeper_reply *a);
static void keeper_ops_op_delete(
	struct keeper *k, const struct keeper_request *q, struct keeper_reply *a);
static void op_set_aside(struct keeper *k, const struct keeper_request *q, struct keeper_reply *a);
static void op_own(struct keeper *k, const struct keeper_request *q, struct keeper_reply *a);
static void keeper_ops_op_usage(
	struct keeper *k, const struct keeper_request *q, struct keeper_reply *a);
static void op_measure(struct keeper *k, const struct keeper_request *q, struct keeper_reply *a);
static void keeper_op_diff(
	struct keeper *k, const struct keeper_request *q, struct keeper_reply *a);
static void keeper_ops_op_next(
	struct keeper *k, const struct keeper_request *q, struct keeper_reply *a);

#define KIND(name) (1u << DISK_##name)
#define ANY_COPY   (KIND(CHECKPOINT) | KIND(SNAPSHOT) | KIND(LAYER))
#define ANY_DISK   (KIND(BOX) | ANY_COPY)

static const struct {
	void (*run)(struct keeper *k, const struct keeper_request *q, struct keeper_reply *a);
	unsigned disks; /* kinds of which one must be named */
	unsigned froms;
	bool in_child;
} ops[KEEPER_OP_END] = {
	[KEEPER_HELLO] = {keeper_ops_op_hello, KIND(NONE), KIND(NONE), false},
	[KEEPER_MAKE] = {op_make, KIND(BOX) | KIND(VOLUME), KIND(NONE) | ANY_DISK, true},
	[KEEPER_LIMIT] = {op_limit, KIND(BOX) | KIND(VOLUME), KIND(NONE), false},
	[KEEPER_KEEP] = {op_keep, ANY_COPY, ANY_DISK, true},
	[KEEPER_RESTORE] = {op_restore, KIND(BOX), KIND(NONE) | ANY_COPY, true},
	[KEEPER_DELETE] = {keeper_ops_op_delete, ANY_DISK | KIND(VOLUME), KIND(NONE), false},
	[KEEPER_SET_ASIDE] = {op_set_aside, ANY_DISK | KIND(VOLUME), KIND(NONE), false},
	[KEEPER_OWN] = {op_own, KIND(NONE), KIND(NONE), false},
	[KEEPER_USAGE] = {keeper_ops_op_usage, ANY_DISK | KIND(VOLUME), KIND(NONE), true},
	[KEEPER_SAMPLE] = {keeper_ops_op_usage, ANY_DISK | KIND(VOLUME), KIND(NONE), false},
	[KEEPER_MEASURE] = {op_measure, ANY_DISK | KIND(VOLUME), KIND(NONE), true},
	[KEEPER_DIFF] = {keeper_op_diff, ANY_DISK, KIND(NONE) | ANY_DISK, false},
	[KEEPER_NEXT] = {keeper_ops_op_next, ANY_DISK | KIND(VOLUME), KIND(NONE), false},
};

/* ---- the operations ---- */

static void keeper_ops_op_hello(
	struct keeper *k, const struct keeper_request *q, struct keeper_reply *a)
{
	(void)q;
	a->disk_pool = k->disk_pool;
	a->flags = (k->quota != QUOTA_NONE ? DISK_POOL_QUOTA : 0) |
		   (k->reflink ? DISK_POOL_REFLINK : 0);
	disk_pool_measure(k, &a->disk_pool_size, &a->disk_pool_free);
}

static void op_make(struct keeper *k, const struct keeper_request *q, struct keeper_reply *a)
{
	a->error = -disk_make(k, &q->disk, &q->from, q->bytes, &a->frozen_us);
}

static void op_limit(struct keeper *k, const struct keeper_request *q, struct keeper_reply *a)
{
	a->error = -disk_limit(k, &q->disk, q->bytes);
}

static void op_keep(struct keeper *k, const struct keeper_request *q, struct keeper_reply *a)
{
	a->error = -disk_keep(k, &q->disk, &q->from, &a->frozen_us);
}

static void op_restore(struct keeper *k, const struct keeper_request *q, struct keeper_reply *a)
{
	a->error = -disk_restore(k, &q->disk, &q->from);
}

static void keeper_ops_op_delete(
	struct keeper *k, const struct keeper_request *q, struct keeper_reply *a)
{
	a->error = -disk_delete(k, &q->disk);
}

static void op_set_aside(struct keeper *k, const struct keeper_request *q, struct keeper_reply *a)
{
	a->error = -disk_set_aside(k, &q->disk);
}

static void op_own(struct keeper *k, const struct keeper_request *q, struct keeper_reply *a)
{
	a->error = -owner_write(k, q->owner);
}

static void keeper_ops_op_usage(
	struct keeper *k, const struct keeper_request *q, struct keeper_reply *a)
{
	a->error = -disk_usage(k, &q->disk, q->op == KEEPER_USAGE, &a->bytes, &a->limit);
}

static void op_measure(struct keeper *k, const struct keeper_request *q, struct keeper_reply *a)
{
	autoclose int fd = disk_open(k, &q->disk);
	/* This child yields to those that make copies. */
	setpriority(PRIO_PROCESS, 0, MEASURE_NICE);
	a->error = fd < 0 ? -fd : -measure_tree(fd, &a->bytes, &a->files);
}

/* The child is on its own from here: only its reader waits for it. */
static void keeper_op_diff(struct keeper *k, const struct keeper_request *q, struct keeper_reply *a)
{
	int ends[2];
	if (reader_count == READERS_MAX || pipe2(ends, O_CLOEXEC) < 0) {
		a->error = reader_count == READERS_MAX ? EAGAIN : errno;
		return;
	}
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		close(k->lock_fd);
		close(k->front_pair[1]);
		close(k->sweeper_pair[0]);
		diff_serve(k, q, ends[1]);
	}
	a->error = pid < 0 ? errno : 0;
	close(ends[1]);
	a->pipe_fd = ends[0];
	if (pid > 0)
		readers[reader_count++] = pid;
}

static void keeper_ops_op_next(
	struct keeper *k, const struct keeper_request *q, struct keeper_reply *a)
{
	disk_next(k, (enum disk_kind)q->disk.kind, q->disk.id, a->id);
}

/* ---- checking and answering ---- */

static bool name_is_valid(const struct disk_name *name, unsigned kinds, bool may_be_empty)
{
	if (name->kind >= DISK_KIND_END || !(kinds & (1u << name->kind)) ||
		name->id[ID_SIZE - 1] != '\0')
		return false;
	if (name->kind == DISK_NONE || (may_be_empty && !name->id[0]))
		return name->id[0] == '\0';
	return id_is_valid(name->id);
}

static bool keeper_ops_request_is_valid(const struct keeper_request *q)
{
	return q->op > 0 && q->op < KEEPER_OP_END && ops[q->op].run && q->bytes >= 0 &&
	       q->bytes <= LIMIT_MAX && q->form < DIFF_FORM_END && q->root[ID_SIZE - 1] == '\0' &&
	       (!q->root[0] || id_is_valid(q->root)) && q->owner[ID_SIZE - 1] == '\0' &&
	       (q->op == KEEPER_OWN) == id_is_valid(q->owner) &&
	       name_is_valid(&q->disk, ops[q->op].disks, q->op == KEEPER_NEXT) &&
	       name_is_valid(&q->from, ops[q->op].froms, false) &&
	       !(q->disk.kind == DISK_VOLUME && q->from.kind != DISK_NONE);
}

static struct keeper_reply reply_to(const struct keeper_request *q)
{
	return (struct keeper_reply){
		.op = q->op, .sequence = q->sequence, .epoch = q->epoch, .pipe_fd = -1};
}

/* With its pipe, if it has one, which is the front's from then on. */
static void keeper_ops_reply(struct keeper *k, const struct keeper_reply *a)
{
	int r = fd_send(k->front_pair[1], a, sizeof *a, a->pipe_fd, 0);
	if (r < 0)
		log_warn("the front does not listen", "error", strerror(-r));
	if (a->pipe_fd >= 0)
		close(a->pipe_fd);
}

static void keeper_ops_refuse(struct keeper *k, const struct keeper_request *q, int error)
{
	struct keeper_reply a = reply_to(q);
	a.error = error;
	keeper_ops_reply(k, &a);
}

static void keeper_ops_perform(struct keeper *k, const struct keeper_request *q)
{
	struct keeper_reply a = reply_to(q);
	FAULT_POINT();
	ops[q->op].run(k, q, &a);
	FAULT_POINT();
	if (a.error && a.error != ENOENT)
		log_error("a disk operation failed", "op", log_num(q->op), "disk", q->disk.id,
			"error", strerror(a.error));
	if (a.error == ENOSPC)
		sweeper_tell(k); /* frees deleted disks */
	keeper_ops_reply(k, &a);
}

/* An empty disk is made in microseconds, and the front is waiting to boot on it. */
static bool needs_child(const struct keeper_request *q)
{
	return ops[q->op].in_child && !(q->op == KEEPER_MAKE && q->from.kind == DISK_NONE);
}

/* The front repeats a request when the keeper before this one died with it still unread. */
static bool is_under_way(const struct keeper_request *q)
{
	for (size_t i = 0; i < child_count; i++)
		if (children[i].request.sequence == q->sequence &&
			children[i].request.epoch == q->epoch)
			return true;
	return false;
}

static void keeper_ops_answer(struct keeper *k, const struct keeper_request *q)
{
	if (is_under_way(q))
		return;
	if (!keeper_ops_request_is_valid(q)) {
		keeper_ops_refuse(k, q, EINVAL);
		return;
	}
	if (!needs_child(q)) {
		keeper_ops_perform(k, q);
		return;
	}
	pid_t pid = fork();
	if (pid == 0) {
		schedule_promptly();
		keeper_ops_perform(k, q);
		_exit(0);
	}
	if (pid < 0)
		keeper_ops_refuse(k, q, errno);
	else
		children[child_count++] = (struct child){pid, *q};
}

static void forget_reader(pid_t pid)
{
	for (size_t i = 0; i < reader_count; i++)
		if (readers[i] == pid)
			readers[i--] = readers[--reader_count];
}

static void reap_children(struct keeper *k)
{
	int status;
	pid_t pid;
	child_ended = 0;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		forget_reader(pid);
		for (size_t i = 0; i < child_count; i++) {
			if (children[i].pid != pid)
				continue;
			if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
				thaw_interrupted(k);
				disk_undo(k, &children[i].request);
				keeper_ops_refuse(k, &children[i].request, EIO);
			}
			children[i--] = children[--child_count];
		}
	}
}

/* ---- the loop ---- */

static void keeper_ops_note_child(int number)
{
	(void)number;
	child_ended = 1;
}

static void keeper_ops_tend(struct keeper *k)
{
	static int64_t next_tend, next_drop, next_expiry;
	int64_t now = clock_monotonic_us();
	if (now >= next_tend) {
		next_tend = now + TEND_US;
		disk_pool_tend(k);
	}
	if (now >= next_expiry) {
		next_expiry = now + EXPIRE_US;
		aside_expire(k);
	}
	/* Not while an operation runs: it may have made a quota group that has no member yet. */
	if (now >= next_drop && child_count == 0 && k->disk_pool == DISK_POOL_LOOP &&
		k->quota == QUOTA_SIMPLE) {
		next_drop = now + DROP_GROUPS_US;
		btrfs_drop_idle_groups(k->disks_fd);
	}
}

/* HELLO lists the disks: it waits, with all requests behind it, until no operation runs. */
static bool keeper_ops_must_wait(int fd)
{
	struct keeper_request q;
	if (child_count == 0)
		return false;
	return child_count == CHILDREN_MAX ||
	       (recv(fd, &q, sizeof q, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof q &&
		       q.op == KEEPER_HELLO);
}

static bool keeper_ops_serve_one(struct keeper *k)
{
	struct keeper_request q;
	ssize_t n = recv(k->front_pair[1], &q, sizeof q, MSG_DONTWAIT);
	if (n == (ssize_t)sizeof q)
		keeper_ops_answer(k, &q);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void keeper_ops_serve(struct keeper *k)
{
	sigset_t none;
	sigemptyset(&none);
	for (;;) {
		struct timespec timeout = {.tv_nsec = TEND_US * 1000L};
		struct pollfd p = {.fd = k->front_pair[1], .events = POLLIN};
		bool full = keeper_ops_must_wait(p.fd);
		if (!child_ended)
			ppoll(&p, full ? 0 : 1, &timeout, &none);
		if (child_ended)
			reap_children(k);
		if (!full && p.revents && !keeper_ops_serve_one(k))
			return;
		keeper_ops_tend(k);
	}
}

/* An earlier keeper of this data may still be carrying something through. */
static int lock_disks(struct keeper *k)
{
	k->lock_fd = openat(k->data_fd, "disks.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (k->lock_fd < 0)
		return -errno;
	while (flock(k->lock_fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

void keeper_main(struct keeper *k)
{
	struct sigaction action = {.sa_handler = keeper_ops_note_child};
	struct rlimit files;
	struct error e = {0};
	sigset_t mask;
	log_set_process("keeper");
	fault_become(FAULT_KEEPER);
	prctl(PR_SET_NAME, "bunker-keeper", 0, 0, 0);
	schedule_promptly();
	/* Ctrl-C is for the server; we carry through what was begun and leave when it has closed
	 * the socket. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	sigaction(SIGCHLD, &action, NULL);
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (confine_keeper(&e) < 0 || lock_disks(k) < 0) {
		log_error("the keeper cannot start", "error", e.message);
		_exit(1);
	}
	thaw_interrupted(k);
	disk_clean_up(k);
	trim_memory();
	keeper_ops_reply(k, &(struct keeper_reply){.op = KEEPER_STARTED, .pipe_fd = -1});
	keeper_ops_serve(k);
	while (child_count > 0 && wait(NULL) > 0)
		;
	_exit(0);
}
