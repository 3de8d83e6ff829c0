/* 65: more terminals than there are. 126, 127: init, which is the agent of the server inside. */
#include "attempt.h"

#include <dirent.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- 65 ---- */

/* As many terminals as the host has to give would leave none for anybody else. */
static enum outcome try_terminals(const struct attempt *a)
{
	long count = 0;
	while (count < a->arg && posix_openpt(O_RDWR | O_NOCTTY) >= 0)
		count++;
	return say(count < a->arg ? BLOCKED : ESCAPED, "%ld terminals: %s", count, strerror(errno));
}

/* ---- 126 ---- */

/* In a control a process of our own takes init's place: it must not be the host's. */
static pid_t agent(void)
{
	static pid_t stand_in;
	if (!is_control)
		return 1;
	if (stand_in == 0 && (stand_in = fork()) == 0) {
		for (;;)
			pause();
	}
	usleep(50000);
	return stand_in;
}

static char state_of(pid_t pid)
{
	char path[64], text[512] = "";
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
		return 'X';
	const char *end = strrchr(text, ')');
	return end && end[1] ? end[2] : 'X';
}

/* What counts is what becomes of it: the kernel may take a signal and drop it. */
static enum outcome try_signal(const struct attempt *a)
{
	pid_t pid = agent();
	kill(pid, (int)a->arg);
	if (is_control && a->arg == SIGKILL)
		waitpid(pid, NULL, WNOHANG);
	usleep(100000);
	char state = state_of(pid);
	bool harmed = state == 'X' || state == 'Z' || state == 'T';
	enum outcome outcome = say(harmed ? ESCAPED : BLOCKED, "its state is %c", state);
	if (is_control)
		kill(pid, SIGKILL);
	return outcome;
}

static enum outcome try_trace(const struct attempt *a)
{
	pid_t pid = agent();
	long r = ptrace(PTRACE_SEIZE, pid, NULL, NULL);
	(void)a;
	enum outcome outcome = judge(r);
	if (is_control)
		kill(pid, SIGKILL);
	return outcome;
}

static enum outcome try_descriptor(const struct attempt *a)
{
	pid_t pid = agent();
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	enum outcome outcome =
		judge(fd < 0 ? -1 : syscall(SYS_pidfd_getfd, fd, is_control ? 1 : (int)a->arg, 0));
	if (is_control)
		kill(pid, SIGKILL);
	return outcome;
}

/* ---- 127 ---- */

static int listening = -1;

/* A listener as init's is: with a name on a file system that we may or may not see. */
static void listen_as_control(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "/tmp/attempt-%d.sock", (int)getpid());
	listening = socket(AF_UNIX, SOCK_STREAM, 0);
	bind(listening, (struct sockaddr *)&address, sizeof address);
	listen(listening, 5);
}

static int connect_to(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t len = strlen(name);
	if (len >= sizeof address.sun_path)
		return -1;
	memcpy(address.sun_path, name, len);
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	int r = connect(fd, (struct sockaddr *)&address, size);
	close(fd);
	return r;
}

/* Every socket that the kernel names to us. */
static enum outcome try_connect(const struct attempt *a)
{
	char line[512];
	int names = 0;
	(void)a;
	if (is_control)
		listen_as_control();
	FILE *list = fopen("/proc/net/unix", "r");
	while (list && fgets(line, sizeof line, list)) {
		char *name = strrchr(line, ' ');
		line[strcspn(line, "\n")] = '\0';
		if (!name || (name[1] != '/' && name[1] != '@'))
			continue;
		names++;
		if (connect_to(name + 1) == 0)
			return say(ESCAPED, "connected to %.100s", name + 1);
	}
	return say(BLOCKED, "%d names, nobody answers", names);
}

/* The sockets' directory of the server, by the paths it might have. */
static enum outcome try_socket_files(const struct attempt *a)
{
	char path[512];
	(void)a;
	if (is_control)
		listen_as_control();
	const char *const places[] = {"/var/lib/bunker/run", "/run/bunker",
		"/proc/1/root/var/lib/bunker/run", is_control ? "/tmp" : "/run"};
	for (size_t i = 0; i < COUNT(places); i++) {
		DIR *d = opendir(places[i]);
		for (struct dirent *e; d && (e = readdir(d));) {
			snprintf(path, sizeof path, "%s/%s", places[i], e->d_name);
			if (strstr(e->d_name, ".sock") && connect_to(path) == 0)
				return say(ESCAPED, "connected to %.100s", path);
		}
	}
	return say(BLOCKED, "no socket answers");
}

static const struct attempt attempts[] = {
	{65, "terminals", try_terminals, 300},
	{126, "kill", try_signal, SIGKILL},
	{126, "term", try_signal, SIGTERM},
	{126, "stop", try_signal, SIGSTOP},
	{126, "segv", try_signal, SIGSEGV},
	{126, "trace", try_trace},
	{126, "listener", try_descriptor, 3},
	{126, "connection", try_descriptor, 7},
	{127, "connect", try_connect},
	{127, "socket-files", try_socket_files},
};

int main(int argc, char **argv)
{
	return attempts_main(argc, argv, attempts, COUNT(attempts));
}
