/* 4: what a setuid program finds that it is and can; one JSON object. Not a table of attempts. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void read_file(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
	out[n > 0 ? n : 0] = '\0';
	for (char *p = out; *p; p++)
		if (*p == '\n')
			*p = ' ';
	if (fd >= 0)
		close(fd);
}

static const char *try_open(const char *path, int flags)
{
	int fd = open(path, flags);
	if (fd >= 0)
		return "read";
	return errno == ENOENT   ? "ENOENT"
	       : errno == EACCES ? "EACCES"
	       : errno == EPERM  ? "EPERM"
				 : "other";
}

int main(void)
{
	char map[256], status[8192];
	const char *canary = getenv("CANARY_FILE");
	read_file("/proc/self/uid_map", map, sizeof map);
	read_file("/proc/self/status", status, sizeof status);
	const char *effective = strstr(status, "CapEff:");
	printf("{\"euid\":%d,\"uid_map\":\"%s\",\"effective\":\"%.16s\",\"canary\":\"%s\",\"memory_of_init\":\"%s\"}\n",
		(int)geteuid(), map, effective ? effective + 8 : "",
		canary ? try_open(canary, O_RDWR) : "unknown", try_open("/proc/1/mem", O_RDWR));
	return 0;
}
