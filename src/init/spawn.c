/*
 * Starts one process. A command shares init's memory until its exec, on a stack of its own, so
 * nothing is copied; unlike with vfork, init waits for that no longer than it wants to. A worker is
 * a plain fork, because it goes on running our code.
 *
 * Every process is born in a cgroup of its own, by CLONE_INTO_CGROUP: writing cgroup.procs
 * afterwards costs an RCU grace period of milliseconds. That needs clone3, whose flags a filter
 * cannot see, so the sandbox's filter allows clone3 and each child loads one small filter more,
 * that answers ENOSYS to it (libc then falls back to clone, whose flags the sandbox's filter
 * checks).
 */
#include "init/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define LOOK_MS          100
#define LOOKS_MAX        20
#define CHILD_STACK_SIZE (64u * 1024)

/*
 * clone3 with a stack of the child's own, where it calls run(arg). It shares our memory; the caller
 * waits for its exec or exit, after which the stack can be used again.
 */
static long clone_on_stack(struct clone_args *args, int (*run)(void *), void *arg)
{
	long r;
#if defined(__x86_64__)
	register long nr asm("rax") = SYS_clone3;
	register void *a asm("rdi") = args;
	register size_t size asm("rsi") = sizeof *args;
	register int (*fn)(void *) asm("r12") = run;
	register void *fn_arg asm("r13") = arg;
	asm volatile("syscall\n\t"
		     "test %%rax, %%rax\n\t"
		     "jnz 1f\n\t"
		     "xor %%ebp, %%ebp\n\t"
		     "mov %%r13, %%rdi\n\t"
		     "call *%%r12\n\t"
		     "hlt\n"
		     "1:"
		     : "+r"(nr)
		     : "r"(a), "r"(size), "r"(fn), "r"(fn_arg)
		     : "rcx", "r11", "memory");
	r = nr;
#elif defined(__aarch64__)
	register long nr asm("x8") = SYS_clone3;
	register void *a asm("x0") = args;
	register size_t size asm("x1") = sizeof *args;
	register int (*fn)(void *) asm("x19") = run;
	register void *fn_arg asm("x20") = arg;
	asm volatile("svc #0\n\t"
		     "cbnz x0, 1f\n\t"
		     "mov x29, #0\n\t"
		     "mov x0, x20\n\t"
		     "blr x19\n\t"
		     "brk #0\n"
		     "1:"
		     : "+r"(a)
		     : "r"(nr), "r"(size), "r"(fn), "r"(fn_arg)
		     : "memory", "x30");
	r = (long)a;
#else
#error "clone_on_stack is written for x86-64 and aarch64"
#endif
	return r;
}

static char *child_stack(void)
{
	static char *stack;
	if (!stack) {
		void *p = mmap(NULL, CHILD_STACK_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
		stack = p == MAP_FAILED ? NULL : p;
	}
	return stack;
}

/*
 * The child's end of the pipe closes with its exec or its death. A process inside may have stopped
 * it before: SIGKILL works on stopped processes, too. Counted are looks and not the clock: while
 * the sandbox is frozen nobody looks, and that costs the child nothing. Others wait meanwhile, and
 * the front gives up an init that is silent for long: more time would cost the whole sandbox.
 */
static bool wait_for_exec(int link_fd, pid_t pid)
{
	struct pollfd p = {.fd = link_fd, .events = POLLIN};
	for (int looks = 0; looks < LOOKS_MAX; looks++)
		if (poll(&p, 1, LOOK_MS) > 0)
			return true;
	kill(pid, SIGKILL);
	poll(&p, 1, -1);
	return false;
}

static pid_t clone_child(struct child *c, int cgroup_fd)
{
	char *stack = child_stack();
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP | CLONE_CLEAR_SIGHAND | CLONE_VM,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)cgroup_fd,
		.stack = (uint64_t)(uintptr_t)stack,
		.stack_size = CHILD_STACK_SIZE,
	};
	int link[2];
	if (!stack)
		return -ENOMEM;
	if (pipe2(link, O_CLOEXEC) < 0)
		return -errno;
	long pid = clone_on_stack(&args, child_main, c);
	close(link[1]);
	if (pid > 0 && !wait_for_exec(link[0], (pid_t)pid)) {
		c->stage = FRAME_STAGE_RESOURCES;
		c->error = ETIMEDOUT;
	}
	close(link[0]);
	/* The child's change of user reset this, for the memory is shared. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	return (pid_t)pid;
}

pid_t spawn_fork(int cgroup_fd)
{
	struct clone_args args = {.flags = CLONE_CLEAR_SIGHAND, .exit_signal = SIGCHLD};
	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	long pid = syscall(SYS_clone3, &args, sizeof args);
	return pid < 0 ? -errno : (pid_t)pid;
}

void spawn_prefer_to_kill(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/oom_score_adj", pid);
	fd_write_file_at(AT_FDCWD, path, "100");
}

static bool env_has(const char *const *envp, const char *name)
{
	size_t len = strlen(name);
	for (; *envp; envp++)
		if (strncmp(*envp, name, len) == 0 && (*envp)[len] == '=')
			return true;
	return false;
}

/* Returns the caller's variables plus the login defaults that the caller did not set. */
static const char **complete_env(const struct start_request *request, const struct user *u)
{
	static char defaults[6][320];
	const struct {
		const char *name, *value;
	} wanted[] = {{"PATH", CHILD_DEFAULT_PATH}, {"HOME", u->home}, {"USER", u->name},
		{"LOGNAME", u->name}, {"SHELL", u->shell}, {"TERM", "xterm-256color"}};
	size_t wanted_count = ARRAY_LEN(wanted);
	if (!(request->fixed.flags & FRAME_START_TERMINAL))
		wanted_count--;
	const char **envp = calloc(request->fixed.envc + ARRAY_LEN(wanted) + 1, sizeof *envp);
	if (!envp)
		return NULL;
	size_t n = request->fixed.envc;
	memcpy(envp, request->envp, n * sizeof *envp);
	for (size_t i = 0; i < wanted_count; i++) {
		if (env_has(request->envp, wanted[i].name))
			continue;
		snprintf(defaults[i], sizeof defaults[i], "%s=%s", wanted[i].name, wanted[i].value);
		envp[n++] = defaults[i];
	}
	return envp;
}

static int open_pipes(const struct start_request *request, int ours[3], int theirs[3])
{
	for (int i = 0; i < 3; i++) {
		int p[2];
		if (i == 0 && !(request->fixed.flags & FRAME_START_STDIN)) {
			theirs[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
			if (theirs[0] < 0)
				return -errno;
			continue;
		}
		if (pipe2(p, O_CLOEXEC) < 0)
			return -errno;
		ours[i] = p[i == 0];
		theirs[i] = p[i != 0];
		fcntl(ours[i], F_SETFL, O_NONBLOCK);
	}
	return 0;
}

/* The master twice, because the loop watches it for both directions. */
static int open_terminal(const struct child *c, int ours[3], int theirs[3])
{
	const struct frame_start *f = &c->request->fixed;
	int r = terminal_open(f->rows, f->columns, c->user.uid, &ours[1], &theirs[0]);
	if (r < 0)
		return r;
	ours[0] = fcntl(ours[1], F_DUPFD_CLOEXEC, 3);
	theirs[1] = fcntl(theirs[0], F_DUPFD_CLOEXEC, 3);
	theirs[2] = fcntl(theirs[0], F_DUPFD_CLOEXEC, 3);
	return ours[0] < 0 || theirs[1] < 0 || theirs[2] < 0 ? -EMFILE : 0;
}

static int open_stdio(struct child *c, int ours[3])
{
	if (c->request->fixed.flags & FRAME_START_TERMINAL)
		return open_terminal(c, ours, c->stdio);
	return open_pipes(c->request, ours, c->stdio);
}

void spawn_close(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int spawn_failed(struct spawn_result *ret, enum frame_stage stage, int error)
{
	ret->stage = stage;
	ret->error = abs(error);
	return -1;
}

/*
 * A minder goes on running our code, so it is a plain fork; where it fails, it says so in memory
 * that both have.
 */
static pid_t fork_minder(struct child *c, int cgroup_fd)
{
	int link[2];
	struct child *shared = mmap(
		NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return -ENOMEM;
	if (pipe2(link, O_CLOEXEC) < 0) {
		munmap(shared, sizeof *shared);
		return -errno;
	}
	*shared = *c;
	pid_t pid = spawn_fork(cgroup_fd);
	if (pid == 0) {
		child_become(shared);
		child_limit_time(shared);
		/* The minder makes no exec: it closes init's descriptors, and must not be traced.
		 */
		syscall(SYS_close_range, INIT_LISTEN_FD, INIT_NETLINK_FD, 0u);
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		spawn_close(link, 2);
		minder_main(c);
	}
	close(link[1]);
	if (pid > 0 && !wait_for_exec(link[0], pid)) {
		shared->stage = FRAME_STAGE_RESOURCES;
		shared->error = ETIMEDOUT;
	}
	c->stage = shared->stage;
	c->error = shared->error;
	close(link[0]);
	munmap(shared, sizeof *shared);
	return pid;
}

/* Descriptors and cgroup are there: clone, and learn whether the exec worked. */
static int spawn_child(struct child *c, int cgroup_fd, struct spawn_result *ret)
{
	bool is_interpreter = c->request->fixed.flags & FRAME_START_INTERPRETER;
	pid_t pid = is_interpreter ? fork_minder(c, cgroup_fd) : clone_child(c, cgroup_fd);
	if (pid < 0)
		return spawn_failed(ret, FRAME_STAGE_RESOURCES, pid);
	if (c->stage != FRAME_STAGE_NONE)
		return spawn_failed(ret, c->stage, c->error); /* process_reap collects it */
	ret->pid = pid;
	spawn_prefer_to_kill(pid);
	return 0;
}

int spawn_process(const struct start_request *request, struct spawn_result *ret)
{
	struct child c = {.request = request, .stdio = {-1, -1, -1}, .control = -1};
	int ours[3] = {-1, -1, -1};
	autofree const char **envp = NULL;
	*ret = (struct spawn_result){0};
	int r = user_lookup(request->user, &c.user);
	if (r < 0)
		return spawn_failed(ret, FRAME_STAGE_USER, r);
	c.envp = envp = complete_env(request, &c.user);
	autoclose int cgroup_fd = envp ? cgroup_take(&ret->cgroup) : -ENOMEM;
	if (cgroup_fd < 0)
		return spawn_failed(ret, FRAME_STAGE_RESOURCES, cgroup_fd);
	r = open_stdio(&c, ours);
	r = r < 0 ? spawn_failed(ret, FRAME_STAGE_RESOURCES, r) : spawn_child(&c, cgroup_fd, ret);
	spawn_close(c.stdio, 3);
	if (r < 0) {
		spawn_close(ours, 3);
		cgroup_release(&ret->cgroup);
		return r;
	}
	ret->stdin_fd = ours[0];
	ret->output_fd[FRAME_STDOUT] = ours[1];
	ret->output_fd[FRAME_STDERR] = ours[2];
	return 0;
}
