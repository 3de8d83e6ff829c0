/*
 * bunker-egress: started, found again, and told what it needs. It is no child that ends with us: it
 * goes on serving sandboxes while the server is away, and a later one of the same version takes it
 * over. It is executed anew from our own image, so that nothing of the server's memory is in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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
#include "netns/netns.h"

#define EGRESS_CGROUP  "egress"
#define EGRESS_MEMORY  "268435456"
#define PATIENCE_S     2
#define PARTING_MS     2000
#define LISTEN_FD      3
#define IMAGE_FD       4
#define LISTEN_BACKLOG 8

static const char version[] = BUNKER_VERSION;

/* ---- its socket ---- */

static void socket_address(const struct netns *n, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(ret->sun_path, sizeof ret->sun_path, "%s", n->socket_path);
}

static int make_listener(const struct netns *n)
{
	struct sockaddr_un address;
	socket_address(n, &address);
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

static int connect_to_it(const struct netns *n)
{
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	struct sockaddr_un address;
	socket_address(n, &address);
	autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
		connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return -errno;
	return take_fd(&fd);
}

/* ---- its process ---- */

/* Joins a cgroup below that of the sandboxes, in which memory is limited. */
static void join_cgroup(const struct netns *n)
{
	const int dirs[] = {n->config.cgroup_fd, n->config.memory_fd};
	static const char *const limits[] = {
		EGRESS_CGROUP "/memory.max", EGRESS_CGROUP "/memory.limit_in_bytes"};
	static const char *const joins[] = {EGRESS_CGROUP "/cgroup.procs", EGRESS_CGROUP "/tasks"};
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		if (dirs[i] < 0)
			continue;
		int r = mkdirat(dirs[i], EGRESS_CGROUP, 0755) < 0 && errno != EEXIST ? -errno : 0;
		bool limits_memory = i == 1 || n->config.memory_fd < 0;
		if (r == 0 && limits_memory)
			r = fd_write_file_at(dirs[i], limits[i], EGRESS_MEMORY);
		if (r == 0)
			r = fd_write_file_at(dirs[i], joins[i], "0");
		if (r < 0) {
			log_error(
				"cannot limit the memory of bunker-egress", "error", strerror(-r));
			_exit(1);
		}
	}
}

static void remove_cgroup(const struct netns *n)
{
	unlinkat(n->config.cgroup_fd, EGRESS_CGROUP, AT_REMOVEDIR);
	if (n->config.memory_fd >= 0)
		unlinkat(n->config.memory_fd, EGRESS_CGROUP, AT_REMOVEDIR);
}

static void become_egress(const struct netns *n, int listen_fd, int log_fd)
	__attribute__((noreturn));
static void become_egress(const struct netns *n, int listen_fd, int log_fd)
{
	char uid[16], level[2] = {(char)('0' + LOG_INFO), '\0'};
	struct rlimit files;
	for (enum log_level l = LOG_ERROR; l <= LOG_DEBUG; l++)
		if (log_is_enabled(l))
			level[0] = (char)('0' + l);
	snprintf(uid, sizeof uid, "%u", n->config.egress_uid);
	const char *argv[] = {EGRESS_NAME, uid, level, NULL};
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
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	join_cgroup(n);
	signal(SIGCHLD, SIG_DFL);
	setsid(); /* what a terminal sends to the server is not for it */
	int image = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(log_fd, 2) < 0)
		_exit(1);
	/* Both behind the places that they get, so that neither is overwritten by the other. */
	image = fcntl(image, F_DUPFD_CLOEXEC, IMAGE_FD + 1);
	listen_fd = fcntl(listen_fd, F_DUPFD_CLOEXEC, IMAGE_FD + 1);
	if (image < 0 || listen_fd < 0 || dup2(listen_fd, LISTEN_FD) < 0 ||
		dup2(image, IMAGE_FD) < 0 || fcntl(IMAGE_FD, F_SETFD, FD_CLOEXEC) < 0)
		_exit(1);
	close_range(IMAGE_FD + 1, ~0u, 0);
	syscall(SYS_execveat, IMAGE_FD, "", argv, envp, AT_EMPTY_PATH);
	_exit(1);
}

int netns_start_egress(struct netns *n)
{
	autoclose int listen_fd = make_listener(n);
	if (listen_fd < 0)
		return listen_fd;
	/* It is connected to before it runs: what is sent waits for it. */
	autoclose int fd = connect_to_it(n);
	if (fd < 0)
		return fd;
	int log[2];
	if (pipe2(log, O_CLOEXEC) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0)
		become_egress(n, listen_fd, log[1]);
	int error = errno;
	close(log[1]);
	if (n->log_fd >= 0)
		close(n->log_fd);
	n->log_fd = log[0];
	if (pid < 0)
		return -error;
	if (send(fd, &n->config.egress, sizeof n->config.egress, MSG_NOSIGNAL) < 0)
		return -errno;
	return take_fd(&fd);
}

/* ---- what is said ---- */

static int greet_egress(int fd, struct egress_hello *answer)
{
	struct egress_hello hello = {.head = {.op = EGRESS_HELLO, .sequence = EGRESS_PROTOCOL}};
	snprintf(hello.version, sizeof hello.version, "%s", version);
	if (send(fd, &hello, sizeof hello, MSG_NOSIGNAL) < 0)
		return -errno;
	ssize_t n = recv(fd, answer, sizeof *answer, 0);
	if (n < 0)
		return -errno;
	bool same = n == (ssize_t)sizeof *answer && answer->head.op == EGRESS_HELLO &&
		    answer->head.sequence == EGRESS_PROTOCOL &&
		    memcmp(answer->version, hello.version, sizeof hello.version) == 0;
	return same ? 0 : -EPROTO;
}

static int read_held(int fd, void (*held)(const char *id, uint64_t inode))
{
	for (;;) {
		struct egress_open what;
		ssize_t n = recv(fd, &what, sizeof what, 0);
		if (n != (ssize_t)sizeof what || what.head.op != EGRESS_HELD)
			return -EPROTO;
		if (!what.head.id[0])
			return 0;
		if (what.head.id[ID_LEN] == '\0' && id_is_valid(what.head.id))
			held(what.head.id, what.namespace);
	}
}

int netns_adopt_egress(struct netns *n, void (*held)(const char *id, uint64_t inode))
{
	struct egress_hello answer;
	autoclose int fd = connect_to_it(n);
	if (fd < 0)
		return netns_start_egress(n);
	int r = greet_egress(fd, &answer);
	if (r == 0 && read_held(fd, held) == 0 &&
		send(fd, &n->config.egress, sizeof n->config.egress, MSG_NOSIGNAL) > 0)
		return take_fd(&fd);
	const struct egress_head retire = {.op = EGRESS_RETIRE};
	log_info("bunker-egress is of another version; it ends with its connections");
	send(fd, &retire, sizeof retire, MSG_NOSIGNAL);
	return netns_start_egress(n);
}

int netns_send_open(int fd, const char *id, uint64_t inode, const struct netns_sockets *s)
{
	const int fds[] = {s->tcp, s->udp, s->link};
	struct egress_open open = {.head = {.op = EGRESS_OPEN}, .namespace = inode};
	memcpy(open.head.id, id, ID_LEN);
	return fd_send_many(fd, &open, sizeof open, fds, ARRAY_LEN(fds), 0);
}

/* Returns whether it goes on with its sandboxes; one that cannot be reached does not. */
static bool egress_goes_on(int fd)
{
	struct egress_head part = {.op = EGRESS_PART};
	struct pollfd p = {.fd = fd};
	if (fd < 0 || send(fd, &part, sizeof part, MSG_NOSIGNAL) < 0)
		return false;
	ssize_t n = recv(fd, &part, sizeof part, 0);
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return false;
	return n != (ssize_t)sizeof part || part.sequence > 0 || poll(&p, 1, PARTING_MS) <= 0;
}

void netns_part_from_egress(struct netns *n, int fd)
{
	if (egress_goes_on(fd))
		return;
	unlink(n->socket_path);
	for (int i = 0; i < 50; i++) { /* until the kernel has let go of the process */
		remove_cgroup(n);
		if (faccessat(n->config.cgroup_fd, EGRESS_CGROUP, F_OK, 0) < 0)
			return;
		usleep(10000);
	}
}
