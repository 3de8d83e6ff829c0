/*
 * 76-78: things with a name that is shared by whoever shares a namespace. `ipc plant` makes one of
 * each under the name CANARY_NAME, prints "planted" and takes them away when its stdin ends; `ipc
 * inside|control` looks for them.
 */
#include "attempt.h"

#include <mqueue.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>

static key_t key(void)
{
	return (key_t)(strtoul(setting("CANARY_NAME"), NULL, 16) & 0x7fffffff);
}

static const char *name_in(const char *directory)
{
	static char path[256];
	snprintf(path, sizeof path, "%s/%s", directory, setting("CANARY_NAME"));
	return path;
}

static int abstract_socket(int (*call)(int, const struct sockaddr *, socklen_t))
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int n = snprintf(
		address.sun_path + 1, sizeof address.sun_path - 1, "%s", setting("CANARY_NAME"));
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	if (fd < 0 || call(fd, (struct sockaddr *)&address, size) < 0)
		return -1;
	return fd;
}

static enum outcome try_sysv(const struct attempt *a)
{
	return judge_path(a->arg == 0   ? shmget(key(), 0, 0)
			  : a->arg == 1 ? semget(key(), 0, 0)
					: msgget(key(), 0));
}

static enum outcome try_queue(const struct attempt *a)
{
	(void)a;
	return judge_path(mq_open(name_in(""), O_RDONLY));
}

static enum outcome try_abstract(const struct attempt *a)
{
	(void)a;
	int fd = abstract_socket(connect);
	if (fd < 0 && errno == ECONNREFUSED)
		return say(BLOCKED, "nobody listens there");
	return judge(fd);
}

static enum outcome try_shm(const struct attempt *a)
{
	return judge_path(open(name_in(a->text), O_RDONLY));
}

static const struct attempt attempts[] = {
	{76, "sysv-shared-memory", try_sysv, .arg = 0},
	{76, "sysv-semaphores", try_sysv, .arg = 1},
	{76, "sysv-messages", try_sysv, .arg = 2},
	{76, "posix-queue", try_queue},
	{77, "abstract-socket", try_abstract},
	{78, "shm-file", try_shm, .text = "/dev/shm"},
};

static int plant(void)
{
	char byte;
	int shm = shmget(key(), 4096, IPC_CREAT | IPC_EXCL | 0666);
	int sem = semget(key(), 1, IPC_CREAT | IPC_EXCL | 0666);
	int msg = msgget(key(), IPC_CREAT | IPC_EXCL | 0666);
	mqd_t queue = mq_open(name_in(""), O_CREAT | O_EXCL | O_RDWR, 0666, NULL);
	int listener = abstract_socket(bind);
	int file = open(name_in("/dev/shm"), O_CREAT | O_EXCL | O_RDWR, 0666);
	bool all = shm >= 0 && sem >= 0 && msg >= 0 && queue >= 0 && file >= 0 && listener >= 0 &&
		   listen(listener, 5) == 0;
	puts(all ? "planted" : strerror(errno));
	fflush(stdout);
	while (all && read(STDIN_FILENO, &byte, 1) > 0)
		;
	shmctl(shm, IPC_RMID, NULL);
	semctl(sem, 0, IPC_RMID);
	msgctl(msg, IPC_RMID, NULL);
	mq_unlink(name_in(""));
	unlink(name_in("/dev/shm"));
	return all ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "plant") == 0)
		return plant();
	return attempts_main(argc, argv, attempts, COUNT(attempts));
}
