/*
 * bunker-egress and bunker-broker as processes: started, connected to, and cleared away. They are
 * no children that end with us: they go on serving sandboxes while the server is away, and a later
 * one of the same version takes them over. Each is executed anew from our own image, so that
 * nothing of the server's memory is in it.
 */
#include "netns/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"

#define DAEMON_MEMORY   "268435456"
#define PATIENCE_S      2
#define LISTEN_FD       3
#define IMAGE_FD        4
#define LISTEN_BACKLOG  8
#define REMOVE_TRIES    50
#define REMOVE_PAUSE_US 10000

/* ---- its socket ---- */

static void daemon_address(const struct daemon *s, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(ret->sun_path, sizeof ret->sun_path, "%s", s->socket_path);
}

static int daemon_listen(const struct netns *n, const struct daemon *s)
{
	struct sockaddr_un address;
	daemon_address(s, &address);
	autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	unlink(address.sun_path);
	mode_t mask = umask(0177);
	int r = bind(fd, (struct sockaddr *)&address, sizeof address);
	umask(mask);
	if (r < 0 || chown(address.sun_path, n->config.front_uid, n->config.front_uid) < 0 ||
		listen(fd, LISTEN_BACKLOG) < 0)
		return -errno;
	return take_fd(&fd);
}

int daemon_connect(const struct daemon *s)
{
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	struct sockaddr_un address;
	daemon_address(s, &address);
	autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
		connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return -errno;
	return take_fd(&fd);
}

/* ---- its cgroup ---- */

static int cgroup_write(int dir_fd, const struct daemon *s, const char *file, const char *text)
{
	char path[DAEMON_NAME_SIZE + 32];
	snprintf(path, sizeof path, "%s/%s", s->cgroup, file);
	return fd_write_file_at(dir_fd, path, text);
}

/* Joins a cgroup below that of the sandboxes, in which memory is limited. Its owner tells the uid
 * of the process, as that of a sandbox does. */
static int cgroup_join(int dir_fd, const struct daemon *s, const char *limit, const char *procs)
{
	if (dir_fd < 0)
		return 0;
	if (mkdirat(dir_fd, s->cgroup, 0755) < 0 && errno != EEXIST)
		return -errno;
	if (fchownat(dir_fd, s->cgroup, s->uid, s->uid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	int r = limit ? cgroup_write(dir_fd, s, limit, DAEMON_MEMORY) : 0;
	return r < 0 ? r : cgroup_write(dir_fd, s, procs, "0");
}

static void daemon_join_cgroup(const struct netns *n, const struct daemon *s)
{
	bool is_v1 = n->config.memory_fd >= 0;
	int r = cgroup_join(n->config.cgroup_fd, s, is_v1 ? NULL : "memory.max", "cgroup.procs");
	if (r == 0)
		r = cgroup_join(n->config.memory_fd, s, "memory.limit_in_bytes", "tasks");
	if (r == 0)
		return;
	log_error(
		"cannot limit the memory of a process", "process", s->name, "error", strerror(-r));
	_exit(1);
}

void daemon_remove(const struct netns *n, const struct daemon *s)
{
	unlink(s->socket_path);
	for (int i = 0; i < REMOVE_TRIES; i++) { /* until the kernel has let go of the process */
		unlinkat(n->config.cgroup_fd, s->cgroup, AT_REMOVEDIR);
		if (n->config.memory_fd >= 0)
			unlinkat(n->config.memory_fd, s->cgroup, AT_REMOVEDIR);
		if (faccessat(n->config.cgroup_fd, s->cgroup, F_OK, 0) < 0)
			return;
		usleep(REMOVE_PAUSE_US);
	}
}

/* ---- its process ---- */

static void daemon_widen_files(void)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

static bool daemon_place_files(int listen_fd, int log_fd)
{
	int image = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(log_fd, 2) < 0)
		return false;
	/* Both behind the places that they get, so that neither is overwritten by the other. */
	image = fcntl(image, F_DUPFD_CLOEXEC, IMAGE_FD + 1);
	listen_fd = fcntl(listen_fd, F_DUPFD_CLOEXEC, IMAGE_FD + 1);
	if (image < 0 || listen_fd < 0 || dup2(listen_fd, LISTEN_FD) < 0 ||
		dup2(image, IMAGE_FD) < 0 || fcntl(IMAGE_FD, F_SETFD, FD_CLOEXEC) < 0)
		return false;
	close_range(IMAGE_FD + 1, ~0u, 0);
	return true;
}

static void daemon_become(const struct netns *n, const struct daemon *s, int listen_fd)
	__attribute__((noreturn));
static void daemon_become(const struct netns *n, const struct daemon *s, int listen_fd)
{
	char uid[16], level[2] = {(char)('0' + LOG_INFO), '\0'};
	for (enum log_level l = LOG_ERROR; l <= LOG_DEBUG; l++)
		if (log_is_enabled(l))
			level[0] = (char)('0' + l);
	snprintf(uid, sizeof uid, "%u", s->uid);
	const char *argv[] = {s->name, uid, level, s->argument, NULL};
	const char *envp[3] = {NULL};
#if BUNKER_SANITIZED
	static char options[2][256];
	const char *const names[] = {"ASAN_OPTIONS", "UBSAN_OPTIONS"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *value = getenv(names[i]);
		snprintf(options[i], sizeof options[i], "%s=%s", names[i], value ? value : "");
		envp[i] = options[i];
	}
#endif
	daemon_widen_files();
	daemon_join_cgroup(n, s);
	signal(SIGCHLD, SIG_DFL);
	setsid(); /* what a terminal sends to the server is not for it */
	if (daemon_place_files(listen_fd, n->log_pipe[1]))
		syscall(SYS_execveat, IMAGE_FD, "", argv, envp, AT_EMPTY_PATH);
	_exit(1);
}

int daemon_start(const struct netns *n, const struct daemon *s)
{
	autoclose int listen_fd = daemon_listen(n, s);
	if (listen_fd < 0)
		return listen_fd;
	/* It is connected to before it runs: what is sent waits for it. */
	autoclose int fd = daemon_connect(s);
	if (fd < 0)
		return fd;
	pid_t pid = fork();
	if (pid == 0)
		daemon_become(n, s, listen_fd);
	return pid < 0 ? -errno : take_fd(&fd);
}
