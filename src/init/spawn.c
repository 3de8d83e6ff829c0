/*
 * Starts one process. A command shares init's memory until its exec, on a stack of its own, so
 * nothing is copied; unlike with vfork, init waits for that no longer than it wants to. A builtin
 * is a plain fork, because it goes on running our code.
 *
 * Every process is born in a cgroup of its own, by CLONE_INTO_CGROUP: writing cgroup.procs
 * afterwards costs an RCU grace period of milliseconds. That needs clone3, whose flags a filter
 * cannot see, so the sandbox's filter allows clone3 and each child loads one small filter more,
 * that answers ENOSYS to it (libc then falls back to clone, whose flags the sandbox's filter
 * checks).
 */
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#endif

#define EXEC_TIMEOUT_MS  2000
#define CHILD_STACK_SIZE (64u * 1024)
#define DEFAULT_PATH     "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* What the child needs, and where it leaves its reason when it fails before the exec. */
struct child {
	const struct start_request *request;
	struct user user;
	const char **envp;
	int stdio[3];
	enum frame_stage stage;
	int error;
};

/* ---- cgroups ---- */

#define SPARES_MAX 8

static unsigned cgroup_counter;
static unsigned spares[SPARES_MAX]; /* empty, to be used again: making one costs more than the
				       exec's frames */
static size_t spare_count;
static unsigned lingering[INIT_MAX_PROCESSES]; /* not empty yet: something runs in the background */
static size_t lingering_count;
/* Bit of a cgroup's number: it was killed, and whatever is cloned into it later would be killed,
 * too. */
#define CGROUP_KILLED 0x80000000u

static void cgroup_name(unsigned number, const char *file, char out[64])
{
	snprintf(out, 64, "e%u%s%s", number & ~CGROUP_KILLED, file[0] ? "/" : "", file);
}

void spawn_prepare(void)
{
	char name[64];
	if (spare_count > 0)
		return;
	cgroup_name(++cgroup_counter, "", name);
	if (mkdirat(INIT_CGROUP_FD, name, 0755) == 0)
		spares[spare_count++] = cgroup_counter;
}

void spawn_kill_cgroup(unsigned *cgroup)
{
	char name[64];
	*cgroup |= CGROUP_KILLED;
	cgroup_name(*cgroup, "cgroup.kill", name);
	fd_write_file_at(INIT_CGROUP_FD, name, "1");
}

static bool is_populated(unsigned cgroup)
{
	char name[64];
	autobuf text = {0};
	cgroup_name(cgroup, "cgroup.events", name);
	if (fd_read_file_at(INIT_CGROUP_FD, name, &text, 4096) < 0)
		return true;
	buf_append_char(&text, '\0');
	return text.failed || !strstr(text.data, "populated 0");
}

/* False while something lives in it. */
static bool retire_cgroup(unsigned cgroup)
{
	char name[64];
	if (is_populated(cgroup))
		return false;
	if (spare_count < SPARES_MAX && !(cgroup & CGROUP_KILLED)) {
		spares[spare_count++] = cgroup;
		return true;
	}
	cgroup_name(cgroup, "", name);
	return unlinkat(INIT_CGROUP_FD, name, AT_REMOVEDIR) == 0;
}

void spawn_release_cgroup(unsigned cgroup)
{
	if (!retire_cgroup(cgroup) && lingering_count < ARRAY_LEN(lingering))
		lingering[lingering_count++] = cgroup;
}

void spawn_retry_releases(void)
{
	size_t kept = 0;
	for (size_t i = 0; i < lingering_count; i++)
		if (!retire_cgroup(lingering[i]))
			lingering[kept++] = lingering[i];
	lingering_count = kept;
}

/* ---- in the child ---- */

#define LOAD(what)              BPF_STMT(BPF_LD | BPF_W | BPF_ABS, what)
#define IF_EQUAL(value, yes)    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, 0)
#define UNLESS_EQUAL(value, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, no)
#define ANSWER(action)          BPF_STMT(BPF_RET | BPF_K, action)
#define NUMBER                  offsetof(struct seccomp_data, nr)
/* The low half: all that the kernel looks at in an int. */
#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + (n) * sizeof(uint64_t))

/*
 * The sandbox's second filter: what needs a look at arguments that libseccomp cannot take. Refused
 * families of sockets answer as a kernel without them would, because libraries ask and go on.
 */
static int load_second_filter(void)
{
	struct sock_filter code[] = {
		LOAD(NUMBER),
		UNLESS_EQUAL(SYS_clone3, 1),
		ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
		UNLESS_EQUAL(SYS_prctl, 4),
		LOAD(ARGUMENT(0)),
		UNLESS_EQUAL(PR_SCHED_CORE, 1),
		ANSWER(SECCOMP_RET_ERRNO | EPERM),
		ANSWER(SECCOMP_RET_ALLOW),
		UNLESS_EQUAL(SYS_ioctl, 5),
		LOAD(ARGUMENT(1)),
		IF_EQUAL(TIOCSTI, 2), /* keys that nobody pressed */
		IF_EQUAL(TIOCLINUX, 1),
		ANSWER(SECCOMP_RET_ALLOW),
		ANSWER(SECCOMP_RET_ERRNO | EPERM),
		UNLESS_EQUAL(SYS_socket, 6),
		LOAD(ARGUMENT(0)),
		IF_EQUAL(AF_UNIX, 4),
		IF_EQUAL(AF_INET, 3),
		IF_EQUAL(AF_INET6, 2),
		IF_EQUAL(AF_NETLINK, 2),
		ANSWER(SECCOMP_RET_ERRNO | EAFNOSUPPORT),
		ANSWER(SECCOMP_RET_ALLOW),
		LOAD(ARGUMENT(2)),
		IF_EQUAL(NETLINK_ROUTE, 1),
		ANSWER(SECCOMP_RET_ERRNO | EPROTONOSUPPORT),
		ANSWER(SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = ARRAY_LEN(code), .filter = code};
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static int child_limits(const struct start_request *request)
{
	struct rlimit none = {0, 0}, files = {request->fixed.open_files, request->fixed.open_files};
	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return -1;
	return request->fixed.open_files ? setrlimit(RLIMIT_NOFILE, &files) : 0;
}

/* Raw calls: libc's wrappers would tell "all threads", which we are not. */
static int child_identity(const struct user *u)
{
	if (syscall(SYS_setgroups, (long)u->group_count, u->groups) < 0 ||
		syscall(SYS_setresgid, u->gid, u->gid, u->gid) < 0)
		return -1;
	return (int)syscall(SYS_setresuid, u->uid, u->uid, u->uid);
}

/*
 * The sandbox's root has no more than its bounding set, from here on and not only after the exec:
 * the directory, the program and a builtin's paths are the caller's, and with init's capabilities
 * /proc/1 would be open to them.
 */
static int child_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	if (syscall(SYS_capget, &header, data) < 0)
		return -1;
	for (int i = 0; i < 2; i++) {
		uint32_t kept = (uint32_t)(init_kept_capabilities >> (i * 32));
		data[i].permitted &= kept;
		data[i].effective &= kept;
		data[i].inheritable = 0;
	}
	return (int)syscall(SYS_capset, &header, data);
}

/* What /proc/self/cwd leads to must be below our root, whatever links led there. */
static bool cwd_is_inside(void)
{
	char path[PATH_MAX];
	return syscall(SYS_getcwd, path, sizeof path) > 0 && path[0] == '/';
}

static int child_descriptors(const struct child *c)
{
	for (int i = 0; i < 3; i++)
		if (dup2(c->stdio[i], i) < 0)
			return -1;
	/* A command's go with its exec: until then, the end of one of them tells init how far it
	 * is. */
	bool builtin = c->request->fixed.flags & FRAME_START_BUILTIN;
	return (int)syscall(SYS_close_range, 3u, ~0u, builtin ? 0u : CLOSE_RANGE_CLOEXEC);
}

static void child_fail(struct child *c, enum frame_stage stage)
{
	c->stage = stage;
	c->error = errno;
	_exit(127);
}

/* Everything that is the same for commands and builtins, in the order that the privileges need. */
static void child_become(struct child *c)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL); /* what is ignored stays ignored across clone and exec */
	setsid();
	if (child_descriptors(c) < 0 || child_limits(c->request) < 0 || load_second_filter() < 0)
		child_fail(c, FRAME_STAGE_RESOURCES);
	if (child_identity(&c->user) < 0 || child_capabilities() < 0)
		child_fail(c, FRAME_STAGE_USER);
	const char *cwd = c->request->cwd;
	if (chdir(cwd[0] ? cwd : c->user.home) < 0) {
		/* A home that is missing is no reason not to run; a directory that was asked for
		 * is. */
		if (cwd[0] || chdir("/") < 0)
			child_fail(c, FRAME_STAGE_CWD);
	}
	if (!cwd_is_inside()) {
		errno = EACCES;
		child_fail(c, FRAME_STAGE_CWD);
	}
}

static const char *child_path_variable(const char *const *envp)
{
	for (; *envp; envp++)
		if (strncmp(*envp, "PATH=", 5) == 0)
			return *envp + 5;
	return DEFAULT_PATH;
}

/* execvp with the PATH that the process will have, not ours. Returns only on failure. */
static void child_exec(const struct child *c)
{
	char *const *argv = (char *const *)c->request->argv;
	char *const *envp = (char *const *)c->envp;
	const char *file = argv[0];
	int error = ENOENT;
	if (file[0] == '\0' || strchr(file, '/')) {
		execve(file, argv, envp);
		return;
	}
	const char *p = child_path_variable(c->envp);
	for (;;) {
		char full[PATH_MAX];
		size_t len = strcspn(p, ":");
		int n = snprintf(full, sizeof full, "%.*s/%s", (int)len, len ? p : ".", file);
		if (n > 0 && (size_t)n < sizeof full) {
			execve(full, argv, envp);
			if (errno != ENOENT && errno != ENOTDIR)
				error = errno;
		}
		if (p[len] == '\0')
			break;
		p += len + 1;
	}
	errno = error;
}

static int child_main(void *arg)
{
	struct child *c = arg;
	child_become(c);
	child_exec(c);
	child_fail(c, FRAME_STAGE_EXEC);
	return 127;
}

/* ---- in init ---- */

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
 * The child's end of the pipe closes with its exec or its death. Somebody inside may have stopped
 * it before: then it is killed, which works on what is stopped, and we go on.
 */
static bool wait_for_exec(int link_fd, pid_t pid)
{
	struct pollfd p = {.fd = link_fd, .events = POLLIN};
	if (poll(&p, 1, EXEC_TIMEOUT_MS) > 0)
		return true;
	kill(pid, SIGKILL);
	poll(&p, 1, -1);
	return false;
}

static pid_t clone_child(struct child *c, int cgroup_fd)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP | CLONE_CLEAR_SIGHAND,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)cgroup_fd,
	};
	long pid;
	if (c->request->fixed.flags & FRAME_START_BUILTIN) {
		pid = syscall(SYS_clone3, &args, sizeof args);
		if (pid == 0) {
			child_become(c);
			_exit(builtin_run(c->request->argv));
		}
		return pid < 0 ? -errno : (pid_t)pid;
	}
	char *stack = child_stack();
	if (!stack)
		return -ENOMEM;
	int link[2];
	if (pipe2(link, O_CLOEXEC) < 0)
		return -errno;
	args.flags |= CLONE_VM;
	args.stack = (uint64_t)(uintptr_t)stack;
	args.stack_size = CHILD_STACK_SIZE;
	pid = clone_on_stack(&args, child_main, c);
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

static bool env_has(const char *const *envp, const char *name)
{
	size_t len = strlen(name);
	for (; *envp; envp++)
		if (strncmp(*envp, name, len) == 0 && (*envp)[len] == '=')
			return true;
	return false;
}

/* The caller's variables, and what every login has when the caller did not say otherwise. */
static const char **complete_env(const struct start_request *request, const struct user *u)
{
	static char defaults[5][320];
	const struct {
		const char *name, *value;
	} wanted[] = {{"PATH", DEFAULT_PATH}, {"HOME", u->home}, {"USER", u->name},
		{"LOGNAME", u->name}, {"SHELL", u->shell}};
	const char **envp = calloc(request->fixed.envc + ARRAY_LEN(wanted) + 1, sizeof *envp);
	if (!envp)
		return NULL;
	size_t n = request->fixed.envc;
	memcpy(envp, request->envp, n * sizeof *envp);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		if (env_has(request->envp, wanted[i].name))
			continue;
		snprintf(defaults[i], sizeof defaults[i], "%s=%s", wanted[i].name, wanted[i].value);
		envp[n++] = defaults[i];
	}
	return envp;
}

static int open_stdio(const struct start_request *request, int ours[3], int theirs[3])
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

static void close_three(int fds[3])
{
	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int open_cgroup(unsigned *number)
{
	char name[64];
	spawn_prepare();
	if (spare_count == 0)
		return -EAGAIN;
	*number = spares[--spare_count];
	cgroup_name(*number, "", name);
	int fd = openat(INIT_CGROUP_FD, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int spawn_failed(struct spawn_result *ret, enum frame_stage stage, int error)
{
	ret->stage = stage;
	ret->error = abs(error);
	return -1;
}

/* Descriptors and cgroup are there: clone, and learn whether the exec worked. */
static int spawn_child(struct child *c, int cgroup_fd, struct spawn_result *ret)
{
	pid_t pid = clone_child(c, cgroup_fd);
	if (pid < 0)
		return spawn_failed(ret, FRAME_STAGE_RESOURCES, pid);
	if (c->stage != FRAME_STAGE_NONE)
		return spawn_failed(ret, c->stage, c->error); /* process_reap collects it */
	ret->pid = pid;
	/* Whoever fills the memory goes before init does. */
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/oom_score_adj", pid);
	fd_write_file_at(AT_FDCWD, path, "100");
	return 0;
}

int spawn_process(const struct start_request *request, struct spawn_result *ret)
{
	struct child c = {.request = request, .stdio = {-1, -1, -1}};
	int ours[3] = {-1, -1, -1};
	autofree const char **envp = NULL;
	*ret = (struct spawn_result){0};
	int r = user_lookup(request->user, &c.user);
	if (r < 0)
		return spawn_failed(ret, FRAME_STAGE_USER, r);
	c.envp = envp = complete_env(request, &c.user);
	autoclose int cgroup_fd = envp ? open_cgroup(&ret->cgroup) : -ENOMEM;
	if (cgroup_fd < 0)
		return spawn_failed(ret, FRAME_STAGE_RESOURCES, cgroup_fd);
	r = open_stdio(request, ours, c.stdio);
	r = r < 0 ? spawn_failed(ret, FRAME_STAGE_RESOURCES, r) : spawn_child(&c, cgroup_fd, ret);
	close_three(c.stdio);
	if (r < 0) {
		close_three(ours);
		spawn_release_cgroup(ret->cgroup);
		return r;
	}
	ret->stdin_fd = ours[0];
	ret->output_fd[FRAME_STDOUT] = ours[1];
	ret->output_fd[FRAME_STDERR] = ours[2];
	return 0;
}
