/* 1-3, 13, 14: other namespaces, by every door that leads to one. */
#include "attempt.h"

#include <linux/sched.h>
#include <sched.h>
#include <sys/socket.h>

static enum outcome try_unshare(const struct attempt *a)
{
	return judge(unshare((int)a->arg));
}

static enum outcome child_of(long pid)
{
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, __WALL);
	return judge(pid);
}

static enum outcome try_clone(const struct attempt *a)
{
	return child_of(syscall(SYS_clone, a->arg | SIGCHLD, 0, 0, 0, 0));
}

static enum outcome try_clone3(const struct attempt *a)
{
	struct clone_args args = {.flags = (uint64_t)a->arg, .exit_signal = SIGCHLD};
	return child_of(syscall(SYS_clone3, &args, sizeof args));
}

static enum outcome try_setns(const struct attempt *a)
{
	const char *path = a->text[0] == '/' ? a->text : victim_path(a->text);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return judge(fd);
	return judge(setns(fd, 0));
}

static int send_descriptor(int socket, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	char byte = 'x';
	struct iovec io = {&byte, 1};
	struct msghdr message = {.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof control.bytes};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(header), &fd, sizeof fd);
	return sendmsg(socket, &message, 0) == 1 ? 0 : -1;
}

static int receive_descriptor(int socket)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	char byte;
	int fd = -1;
	struct iovec io = {&byte, 1};
	struct msghdr message = {.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof control.bytes};
	if (recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
	return fd;
}

static enum outcome try_passed_descriptor(const struct attempt *a)
{
	int pair[2], fd = open("/proc/self/ns/net", O_RDONLY);
	(void)a;
	if (fd < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 ||
		send_descriptor(pair[0], fd) < 0)
		return say(ERROR, "cannot pass a descriptor: %s", strerror(errno));
	int passed = receive_descriptor(pair[1]);
	if (passed < 0)
		return say(ERROR, "no descriptor came: %s", strerror(errno));
	return judge(setns(passed, CLONE_NEWNET));
}

static enum outcome try_pidfd(const struct attempt *a)
{
	int fd = (int)syscall(SYS_pidfd_open, a->arg ? victim() : getpid(), 0);
	if (fd < 0)
		return say(ERROR, "pidfd_open: %s", strerror(errno));
	return judge(setns(fd, CLONE_NEWUTS));
}

/* With a namespace of its own, where one is to be had; without one, the maps are those of the
 * sandbox. */
static enum outcome try_map(const struct attempt *a)
{
	if (unshare(CLONE_NEWUSER) < 0 && is_control)
		return say(ERROR, "unshare: %s", strerror(errno));
	int fd = open(a->text, O_WRONLY);
	if (fd < 0)
		return judge(fd);
	const char *value = strstr(a->text, "setgroups") ? "deny" : "0 0 1\n";
	return judge(write(fd, value, strlen(value)));
}

static enum outcome try_hostname(const struct attempt *a)
{
	const char *name = setting("CANARY_HOSTNAME");
	if (!name[0] || (is_control && unshare(CLONE_NEWUTS) < 0))
		return say(ERROR, "no name to set, or no namespace to set it in");
	return judge(a->arg ? setdomainname(name, strlen(name)) : sethostname(name, strlen(name)));
}

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
#define ALL                                                                                        \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
		CLONE_NEWCGROUP)

static const struct attempt attempts[] = {
	{1, "unshare-user", try_unshare, .arg = CLONE_NEWUSER},
	{1, "unshare-mount", try_unshare, .arg = CLONE_NEWNS},
	{1, "unshare-pid", try_unshare, .arg = CLONE_NEWPID},
	{1, "unshare-net", try_unshare, .arg = CLONE_NEWNET},
	{1, "unshare-ipc", try_unshare, .arg = CLONE_NEWIPC},
	{1, "unshare-uts", try_unshare, .arg = CLONE_NEWUTS},
	{1, "unshare-cgroup", try_unshare, .arg = CLONE_NEWCGROUP},
	{1, "unshare-time", try_unshare, .arg = CLONE_NEWTIME},
	{1, "unshare-user-and-mount", try_unshare, .arg = CLONE_NEWUSER | CLONE_NEWNS},
	{1, "unshare-user-and-net", try_unshare, .arg = CLONE_NEWUSER | CLONE_NEWNET},
	{1, "unshare-all", try_unshare, .arg = ALL},
	{1, "clone-user", try_clone, .arg = CLONE_NEWUSER},
	{1, "clone-mount", try_clone, .arg = CLONE_NEWNS},
	{1, "clone-pid", try_clone, .arg = CLONE_NEWPID},
	{1, "clone-net", try_clone, .arg = CLONE_NEWNET},
	{1, "clone-ipc", try_clone, .arg = CLONE_NEWIPC},
	{1, "clone-uts", try_clone, .arg = CLONE_NEWUTS},
	{1, "clone-cgroup", try_clone, .arg = CLONE_NEWCGROUP},
	{1, "clone-all", try_clone, .arg = ALL},
	{2, "clone3-plain", try_clone3, .arg = 0},
	{2, "clone3-user", try_clone3, .arg = CLONE_NEWUSER},
	{2, "clone3-mount", try_clone3, .arg = CLONE_NEWNS},
	{2, "clone3-net", try_clone3, .arg = CLONE_NEWNET},
	{2, "clone3-time", try_clone3, .arg = CLONE_NEWTIME},
	{2, "clone3-all", try_clone3, .arg = ALL},
	{3, "setns-of-init-mount", try_setns, .text = "ns/mnt"},
	{3, "setns-of-init-net", try_setns, .text = "ns/net"},
	{3, "setns-of-init-pid", try_setns, .text = "ns/pid"},
	{3, "setns-of-init-uts", try_setns, .text = "ns/uts"},
	{3, "setns-own-net", try_setns, .text = "/proc/self/ns/net"},
	{3, "setns-own-mount", try_setns, .text = "/proc/self/ns/mnt"},
	{3, "setns-passed-descriptor", try_passed_descriptor},
	{3, "setns-pidfd-self", try_pidfd, .arg = 0},
	{3, "setns-pidfd-init", try_pidfd, .arg = 1},
	{13, "write-uid-map", try_map, .text = "/proc/self/uid_map"},
	{13, "write-gid-map-of-init", try_map, .text = "/proc/1/gid_map",
		.no_control = "it would be the map of the host's init"},
	{13, "write-setgroups", try_map, .text = "/proc/self/setgroups"},
	{14, "sethostname", try_hostname, .arg = 0},
	{14, "setdomainname", try_hostname, .arg = 1},
};

int main(int argc, char **argv)
{
	return attempts_main(argc, argv, attempts, COUNT(attempts));
}
