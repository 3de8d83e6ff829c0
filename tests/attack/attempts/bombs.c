/* 57-59, 61, 63, 75: programs that take without end. `bombs NAME`; they end when they are killed.
 */
#include "attempt.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

static char chunk[1 << 20];

static void hold(void)
{
	for (;;)
		pause();
}

/* ---- 57: processes ---- */

static void bomb_fork(void)
{
	for (;;)
		fork();
}

static void *thread_main(void *arg)
{
	hold();
	return arg;
}

static void bomb_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16384);
	for (;;)
		pthread_create(&thread, &attr, thread_main, NULL);
}

static void bomb_vfork(void)
{
	for (;;) {
		if (fork() == 0 && vfork() == 0)
			for (;;)
				pause();
	}
}

static void bomb_zombie(void)
{
	for (;;)
		if (fork() == 0)
			_exit(0);
}

/* ---- 58: memory ---- */

static void bomb_touch(void)
{
	for (;;) {
		char *p = mmap(NULL, sizeof chunk, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p != MAP_FAILED)
			memset(p, 1, sizeof chunk);
	}
}

static void fill_descriptor(int fd)
{
	while (write(fd, chunk, sizeof chunk) > 0)
		;
}

static void bomb_tmpfs(void)
{
	fill_descriptor(open("/dev/shm/bomb", O_CREAT | O_WRONLY, 0600));
	hold();
}

static void bomb_memfd(void)
{
	for (;;)
		fill_descriptor((int)syscall(SYS_memfd_create, "bomb", 0));
}

static void bomb_pipes(void)
{
	int p[2];
	while (pipe2(p, O_NONBLOCK) == 0) {
		fcntl(p[1], F_SETPIPE_SZ, 1 << 20);
		fill_descriptor(p[1]);
	}
	hold();
}

static void bomb_unix(void)
{
	int pair[2], size = 8 << 20;
	while (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0) {
		setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
		fill_descriptor(pair[0]);
	}
	hold();
}

static int listen_anywhere(int type, struct sockaddr_in *address)
{
	socklen_t size = sizeof *address;
	int fd = socket(AF_INET, type, 0);
	*address = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd < 0 || bind(fd, (struct sockaddr *)address, sizeof *address) < 0 ||
		getsockname(fd, (struct sockaddr *)address, &size) < 0)
		exit(1);
	if (type == SOCK_STREAM)
		listen(fd, 4096);
	return fd;
}

/* Eighty connections are enough to tell; more would hurt the host that the tests run on. */
static void bomb_tcp(void)
{
	struct sockaddr_in address;
	int listener = listen_anywhere(SOCK_STREAM, &address);
	for (int i = 0; i < 80; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
			accept(listener, NULL, NULL) < 0)
			break;
		fcntl(fd, F_SETFL, O_NONBLOCK);
		fill_descriptor(fd);
	}
	hold();
}

static void bomb_udp(void)
{
	for (int i = 0; i < 2000; i++) {
		struct sockaddr_in address;
		int fd = listen_anywhere(SOCK_DGRAM, &address);
		for (int j = 0; j < 8; j++)
			sendto(fd, chunk, 60000, MSG_DONTWAIT, (struct sockaddr *)&address,
				sizeof address);
	}
	hold();
}

/* Names that do not exist are remembered, too. */
static void bomb_dentries(void)
{
	char path[64];
	for (unsigned i = 0;; i++) {
		snprintf(path, sizeof path, "/tmp/no-such-file-%u-%d", i, (int)getpid());
		access(path, F_OK);
	}
}

static void close_all(void)
{
	syscall(SYS_close_range, 3u, ~0u, 0u);
}

static void bomb_epoll(void)
{
	/* Each child has a table of descriptors of its own to fill. */
	for (;;) {
		int fd = epoll_create1(0), event = eventfd(0, 0);
		struct epoll_event e = {.events = EPOLLIN};
		if (fd >= 0 && event >= 0)
			epoll_ctl(fd, EPOLL_CTL_ADD, event, &e);
		else if (fork() == 0)
			close_all();
		else
			hold();
	}
}

/* One page in every two megabytes: the tables cost as much as the pages. */
static void bomb_page_tables(void)
{
	for (;;) {
		char *p = mmap(NULL, 1ul << 30, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED)
			break;
		madvise(p, 1ul << 30, MADV_NOHUGEPAGE);
		for (size_t at = 0; at < 1ul << 30; at += 2 << 20)
			(void)*(volatile char *)(p + at); /* the zero page, but real tables */
	}
	hold();
}

static void bomb_mlock(void)
{
	size_t locked = 0;
	for (;;) {
		char *p = mmap(NULL, sizeof chunk, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED || mlock(p, sizeof chunk) < 0)
			break;
		locked += sizeof chunk;
	}
	printf("%zu\n", locked);
	fflush(stdout);
	hold();
}

/* ---- 59 ---- */

static void bomb_spin(void)
{
	for (int i = 0; i < 4; i++)
		if (fork() == 0)
			break;
	for (;;)
		;
}

/* ---- 61 ---- */

static void bomb_single_bytes(void)
{
	for (int i = 0; i < 1000000; i++)
		if (write(i & 1 ? STDERR_FILENO : STDOUT_FILENO, "x", 1) != 1)
			exit(1);
	exit(0);
}

/* ---- 62, 63, 75 ---- */

/* Out of the session, the group and the parent's sight, deaf to everything that can be ignored. */
static void become_daemon(bool keep_streams)
{
	if (fork() > 0)
		exit(0);
	setsid();
	if (fork() > 0)
		_exit(0);
	for (int number = 1; number < 65; number++)
		signal(number, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	if (!keep_streams) {
		int null = open("/dev/null", O_RDWR);
		for (int i = 0; i < 3; i++)
			dup2(null, i);
	}
}

static void bomb_daemon(void)
{
	become_daemon(false);
	for (;;)
		sleep(1000);
}

/* The same, but those who started us wait for it. */
static void bomb_daemon_and_wait(void)
{
	if (fork() == 0)
		bomb_daemon();
	hold();
}

static void bomb_holds_stdout(void)
{
	puts("from the main process");
	fflush(stdout);
	become_daemon(true);
	for (;;) {
		if (write(STDOUT_FILENO, "late\n", 5) < 0)
			_exit(0);
		usleep(10000);
	}
}

/* A tree that stops itself. */
static void bomb_stopped(void)
{
	for (int i = 0; i < 20; i++) {
		if (fork() == 0) {
			setsid();
			raise(SIGSTOP);
			hold();
		}
	}
	puts("stopped");
	fflush(stdout);
	hold();
}

/* Stops whatever process comes next: with luck one that init has begun and not finished to start.
 */
static void bomb_stop_newcomers(void)
{
	pid_t self;
	fork();
	self = getpid();
	for (;;)
		for (pid_t pid = self + 2; pid < self + 40; pid++)
			kill(pid, SIGSTOP);
}

/* In the kernel, waiting for a child that never comes back: only a kill of both ends it. */
static void bomb_vfork_wait(void)
{
	for (int i = 0; i < 20; i++)
		if (fork() == 0) {
			if (vfork() == 0)
				for (;;)
					pause();
			hold();
		}
	puts("waiting");
	fflush(stdout);
	hold();
}

/* Many processes with large page tables: the kernel needs seconds to take them apart. */
static void bomb_slow_to_die(void)
{
	size_t size = 200ul << 20;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(p, size, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < size; at += 4096)
		p[at] = 1;
	for (int i = 0; i < 600; i++) {
		pid_t pid = fork();
		if (pid < 0)
			break;
		if (pid == 0)
			hold();
	}
	puts("ready");
	fflush(stdout);
	hold();
}

static const struct {
	const char *name;
	void (*run)(void);
} bombs[] = {{"fork", bomb_fork}, {"thread", bomb_thread}, {"vfork", bomb_vfork},
	{"zombie", bomb_zombie}, {"touch", bomb_touch}, {"tmpfs", bomb_tmpfs},
	{"memfd", bomb_memfd}, {"pipes", bomb_pipes}, {"unix", bomb_unix}, {"tcp", bomb_tcp},
	{"udp", bomb_udp}, {"dentries", bomb_dentries}, {"epoll", bomb_epoll},
	{"page-tables", bomb_page_tables}, {"mlock", bomb_mlock}, {"spin", bomb_spin},
	{"single-bytes", bomb_single_bytes}, {"daemon", bomb_daemon},
	{"daemon-and-wait", bomb_daemon_and_wait}, {"holds-stdout", bomb_holds_stdout},
	{"stopped", bomb_stopped}, {"stop-newcomers", bomb_stop_newcomers},
	{"vfork-wait", bomb_vfork_wait}, {"slow-to-die", bomb_slow_to_die}};

int main(int argc, char **argv)
{
	must_be_inside();
	for (size_t i = 0; argc == 2 && i < COUNT(bombs); i++)
		if (strcmp(bombs[i].name, argv[1]) == 0)
			bombs[i].run();
	return 2;
}
