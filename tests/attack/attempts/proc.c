/* 28-31, 33, 34, 36, 71-73: what /proc, /sys and the network tell, and what can be changed there.
 */
#include "attempt.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* ---- 28, 29: init, and processes of the host ---- */

static enum outcome try_open(const struct attempt *a)
{
	const char *path = a->text[0] == '/' ? a->text : victim_path(a->text);
	int fd = open(path, (int)a->arg);
	if (fd < 0 && errno == ETXTBSY)
		return say(ESCAPED, "only its being in use stopped the kernel");
	return judge_path(fd);
}

static enum outcome try_read(const struct attempt *a)
{
	char byte;
	int fd = open(victim_path(a->text), O_RDONLY);
	return judge_path(fd < 0 ? fd : read(fd, &byte, 1));
}

/* The numbers of descriptors may be seen; where they lead may not. */
static enum outcome try_list(const struct attempt *a)
{
	char path[PATH_MAX], target[PATH_MAX];
	DIR *dir = opendir(victim_path(a->text));
	struct dirent *entry;
	if (!dir)
		return judge_path(-1);
	errno = EACCES; /* what readdir leaves when it may not list */
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%s/%.64s", victim_path(a->text), entry->d_name);
		return judge_path(readlink(path, target, sizeof target));
	}
	return judge_path(-1);
}

static enum outcome try_readlink(const struct attempt *a)
{
	char target[PATH_MAX];
	return judge_path(readlink(victim_path(a->text), target, sizeof target));
}

/* By O_PATH first, as the overwriting of runc did it. */
static enum outcome try_reopen_exe(const struct attempt *a)
{
	char path[64];
	int fd = open(victim_path("exe"), O_PATH);
	(void)a;
	if (fd < 0)
		return judge(fd);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int again = open(path, O_WRONLY);
	if (again < 0 && errno == ETXTBSY)
		return say(ESCAPED, "only its being in use stopped the kernel");
	return judge(again);
}

static bool file_contains(const char *path, const char *wanted)
{
	static char text[1 << 20];
	int fd = open(path, O_RDONLY | O_NONBLOCK);
	size_t used = 0;
	ssize_t n;
	if (fd < 0)
		return false;
	while ((n = read(fd, text + used, sizeof text - used)) > 0)
		used += (size_t)n;
	close(fd);
	return memmem(text, used, wanted, strlen(wanted)) != NULL;
}

/* The canary has the mark among its arguments; so has nobody else but who knows the environment. */
static enum outcome look_for_canary(const struct attempt *a)
{
	const char *mark = setting("CANARY_MARK");
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int processes = 0;
	(void)a;
	if (!mark[0] || !dir)
		return say(ERROR, "nothing to look for, or nowhere to look");
	while ((entry = readdir(dir)) != NULL) {
		char path[512];
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		processes++;
		snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
		if (file_contains(path, mark))
			return say(ESCAPED, "it is process %s", entry->d_name);
	}
	return say(BLOCKED, "it is none of the %d processes here", processes);
}

/* ---- 30: opened for writing, not written: what opens can be written ---- */

static enum outcome try_write_open(const struct attempt *a)
{
	return judge_path(open(a->text, O_WRONLY));
}

static enum outcome try_pressure_trigger(const struct attempt *a)
{
	static const char trigger[] = "some 1500000 2000000\n";
	int fd = open(a->text, O_RDWR | O_NONBLOCK);
	if (fd < 0)
		return judge_path(fd);
	return judge(write(fd, trigger, sizeof trigger));
}

/* ---- 31: what tells about the host ---- */

static enum outcome try_peek(const struct attempt *a)
{
	char bytes[64];
	struct stat st;
	int fd = open(a->text, O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		return judge_path(fd);
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		DIR *dir = fdopendir(fd);
		struct dirent *entry;
		while (dir && (entry = readdir(dir)) != NULL)
			if (entry->d_name[0] != '.')
				return say(ESCAPED, "there is %.100s", entry->d_name);
		verdict.error = ENOENT;
		return say(BLOCKED, "it is empty");
	}
	ssize_t n = read(fd, bytes, sizeof bytes);
	if (n > 0)
		return say(ESCAPED, "there is something to read");
	if (n == 0) {
		verdict.error = ENOENT;
		return say(BLOCKED, "it is empty");
	}
	return judge(n);
}

static enum outcome try_just_open(const struct attempt *a)
{
	return judge_path(open(a->text, O_RDONLY | O_NONBLOCK));
}

/* ---- 33: the network ---- */

static enum outcome look_for_port(const struct attempt *a)
{
	char wanted[32];
	snprintf(wanted, sizeof wanted, "0100007F:%04X", (unsigned)atoi(setting("CANARY_PORT")));
	return file_contains(a->text, wanted) ? say(ESCAPED, "the canary's port is there")
					      : say(BLOCKED, "the canary's port is not there");
}

static enum outcome look_for_interfaces(const struct attempt *a)
{
	char line[256];
	FILE *f = fopen(a->text, "r");
	if (!f)
		return say(ERROR, "%s: %s", a->text, strerror(errno));
	while (fgets(line, sizeof line, f)) {
		char name[64];
		if (sscanf(line, " %63[^: ]:", name) == 1 && strchr(line, ':') &&
			strcmp(name, "lo") != 0)
			return say(ESCAPED, "there is the interface %s", name);
	}
	verdict.error = ENODEV; /* a host may have none either */
	return say(BLOCKED, "there is lo and nothing else");
}

static enum outcome look_for_sockets(const struct attempt *a)
{
	char line[512];
	FILE *f = fopen(a->text, "r");
	if (!f)
		return say(ERROR, "%s: %s", a->text, strerror(errno));
	while (fgets(line, sizeof line, f))
		if (strchr(line, '/') || strchr(line, '@'))
			return say(ESCAPED, "there is a socket with a name");
	verdict.error = ENOENT;
	return say(BLOCKED, "no socket has a name");
}

static enum outcome try_connect(const struct attempt *a)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(setting("CANARY_PORT")))};
	inet_pton(AF_INET, a->text, &address.sin_addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0)
		return judge(fd);
	if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
		verdict.error = errno == ENETUNREACH ? ENODEV : errno;
		return say(BLOCKED, "%s", strerror(errno));
	}
	const char *greeting = is_control ? "control" : "inside";
	return judge(write(fd, greeting, strlen(greeting)));
}

/* ---- 34: a crash ---- */

static bool core_goes_to_a_program(void)
{
	char first = 0;
	int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY);
	return fd >= 0 && read(fd, &first, 1) == 1 && first == '|';
}

static enum outcome try_core(const struct attempt *a)
{
	char place[] = "/tmp/attemptXXXXXX";
	struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
	int status = 0, files = 0;
	(void)a;
	if (is_control && core_goes_to_a_program())
		return say(ERROR,
			"absent: cores go to a program of the host, which must not be started");
	if (!mkdtemp(place) || chdir(place) < 0)
		return say(ERROR, "cannot prepare: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &all);
		prctl(PR_SET_NAME, "../../x|sh", 0, 0, 0);
		abort();
	}
	waitpid(pid, &status, 0);
	DIR *dir = opendir(".");
	struct dirent *entry;
	while (dir && (entry = readdir(dir)) != NULL) {
		files += entry->d_name[0] != '.';
		unlink(entry->d_name);
	}
	rmdir(place);
	if (files || WCOREDUMP(status))
		return say(ESCAPED, "a core was written");
	return say(BLOCKED, "no core was written");
}

/* ---- 71-73: cgroup files; any of several places ---- */

static enum outcome try_cgroup_file(const struct attempt *a)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified",
		"/sys/fs/cgroup/memory", "/sys/fs/cgroup/devices", "/sys/fs/cgroup/pids",
		"/sys/fs/cgroup/cpu", "/proc/1/fd/4", "/proc/1/fd/4/../..", "/proc/self/fd/4"};
	for (size_t i = 0; i < COUNT(roots); i++) {
		char path[256];
		snprintf(path, sizeof path, "%s/%s", roots[i], a->text);
		if (open(path, O_WRONLY) >= 0)
			return say(ESCAPED, "%s can be written", path);
	}
	verdict.error = ENOENT;
	return say(BLOCKED, "there is none to write to");
}

#define SYSCTL(name)                                                                               \
	{                                                                                          \
		30, "write-" name, try_write_open, .text = "/proc/sys/" name                       \
	}
#define HIDDEN(name)                                                                               \
	{                                                                                          \
		31, "read-" name, try_peek, .text = "/" name                                       \
	}

static const struct attempt attempts[] = {
	{28, "root-of-init", try_readlink, .text = "root"},
	{28, "enter-root-of-init", try_open, .text = "root/etc", .arg = O_RDONLY},
	{28, "cwd-of-init", try_open, .text = "cwd", .arg = O_RDONLY},
	{28, "exe-of-init", try_readlink, .text = "exe"},
	{28, "read-exe-of-init", try_open, .text = "exe", .arg = O_RDONLY},
	{28, "environ-of-init", try_open, .text = "environ", .arg = O_RDONLY},
	{28, "maps-of-init", try_read, .text = "maps"},
	{28, "mem-of-init", try_open, .text = "mem", .arg = O_RDONLY},
	{28, "write-mem-of-init", try_open, .text = "mem", .arg = O_RDWR},
	{28, "auxv-of-init", try_read, .text = "auxv"},
	{28, "syscall-of-init", try_read, .text = "syscall"},
	{28, "io-of-init", try_read, .text = "io"},
	{28, "descriptors-of-init", try_list, .text = "fd"},
	{28, "mapped-files-of-init", try_list, .text = "map_files"},
	{28, "descriptor-0-of-init", try_open, .text = "fd/0", .arg = O_RDONLY},
	{28, "cgroup-of-init", try_open, .text = "fd/4", .arg = O_RDONLY,
		.no_control =
			"the canary has no such descriptor; descriptor-0 shows that they open"},
	{28, "namespaces-of-init", try_readlink, .text = "ns/net"},
	{28, "find-canary", look_for_canary},
	{29, "write-exe-of-init", try_open, .text = "exe", .arg = O_WRONLY},
	{29, "reopen-exe-of-init", try_reopen_exe},
	SYSCTL("kernel/core_pattern"),
	SYSCTL("kernel/modprobe"),
	SYSCTL("kernel/hotplug"),
	SYSCTL("kernel/sysrq"),
	SYSCTL("kernel/randomize_va_space"),
	SYSCTL("kernel/hostname"),
	SYSCTL("kernel/ns_last_pid"),
	SYSCTL("kernel/pid_max"),
	SYSCTL("kernel/shmmax"),
	SYSCTL("vm/overcommit_memory"),
	SYSCTL("vm/drop_caches"),
	SYSCTL("vm/panic_on_oom"),
	SYSCTL("vm/swappiness"),
	SYSCTL("fs/file-max"),
	SYSCTL("fs/protected_symlinks"),
	SYSCTL("fs/suid_dumpable"),
	SYSCTL("fs/binfmt_misc/register"),
	SYSCTL("net/ipv4/ip_forward"),
	SYSCTL("net/ipv4/ip_unprivileged_port_start"),
	SYSCTL("net/core/somaxconn"),
	{30, "write-user/max_user_namespaces", try_write_open,
		.text = "/proc/sys/user/max_user_namespaces", .needs = CAP_SYS_RESOURCE},
	{30, "write-sysrq-trigger", try_write_open, .text = "/proc/sysrq-trigger"},
	{30, "write-irq", try_write_open, .text = "/proc/irq/default_smp_affinity"},
	{30, "write-mtrr", try_write_open, .text = "/proc/mtrr"},
	{30, "write-dynamic-debug", try_write_open, .text = "/proc/dynamic_debug/control"},
	{30, "pressure-trigger", try_pressure_trigger, .text = "/proc/pressure/cpu"},
	HIDDEN("proc/kcore"),
	HIDDEN("proc/keys"),
	HIDDEN("proc/key-users"),
	HIDDEN("proc/timer_list"),
	HIDDEN("proc/kallsyms"),
	HIDDEN("proc/sched_debug"),
	HIDDEN("proc/interrupts"),
	HIDDEN("proc/latency_stats"),
	HIDDEN("proc/slabinfo"),
	HIDDEN("proc/vmallocinfo"),
	HIDDEN("proc/kpagecount"),
	HIDDEN("proc/kpageflags"),
	HIDDEN("proc/pagetypeinfo"),
	HIDDEN("proc/scsi"),
	HIDDEN("proc/acpi"),
	HIDDEN("proc/asound"),
	HIDDEN("proc/bus"),
	HIDDEN("proc/fs"),
	HIDDEN("proc/irq"),
	HIDDEN("proc/config.gz"),
	HIDDEN("sys/firmware"),
	HIDDEN("sys/kernel"),
	HIDDEN("sys/kernel/debug"),
	HIDDEN("sys/kernel/tracing"),
	HIDDEN("sys/kernel/security"),
	HIDDEN("sys/fs/cgroup"),
	HIDDEN("sys/class"),
	HIDDEN("sys/module"),
	HIDDEN("sys/bus"),
	{31, "open-proc/kmsg", try_just_open, .text = "/proc/kmsg"},
	{33, "canary-port-in-tcp", look_for_port, .text = "/proc/net/tcp"},
	{33, "canary-port-of-init", look_for_port, .text = "/proc/1/net/tcp"},
	{33, "interfaces", look_for_interfaces, .text = "/proc/net/dev"},
	{33, "unix-sockets", look_for_sockets, .text = "/proc/net/unix"},
	{33, "connect-to-canary", try_connect, .text = "127.0.0.1"},
	{33, "connect-to-canary-by-zero", try_connect, .text = "0.0.0.0"},
	{34, "core", try_core},
	{71, "join-another-cgroup", try_cgroup_file, .text = "cgroup.procs"},
	{71, "join-another-cgroup-by-tasks", try_cgroup_file, .text = "tasks"},
	{72, "allow-devices", try_cgroup_file, .text = "devices.allow"},
	{73, "raise-memory", try_cgroup_file, .text = "memory.limit_in_bytes"},
	{73, "raise-memory-on-v2", try_cgroup_file, .text = "memory.max"},
	{73, "raise-pids", try_cgroup_file, .text = "pids.max"},
	{73, "raise-cpu", try_cgroup_file, .text = "cpu.cfs_quota_us"},
};

int main(int argc, char **argv)
{
	return attempts_main(argc, argv, attempts, COUNT(attempts));
}
