/*
 * A cgroup per process, so that "the process and everything it started" is something the kernel
 * knows: what is killed, signalled and measured together. It is made in advance, and an empty one
 * is used again, because making one costs more than an exec's frames.
 */
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"

#define SPARES_MAX  8
#define RETRIES_MAX 64
#define SHORT_MAX   512
/* A tree that forks while it is signalled is looked at again, but not for ever. */
#define SIGNAL_ROUNDS 4
#define PIDS_MAX      65536
#define PIDS_TEXT_MAX (PIDS_MAX * 8u)

static unsigned counter;
static struct cgroup spares[SPARES_MAX]; /* empty, to be used again */
static size_t spare_count;
static struct cgroup lingering[INIT_MAX_PROCESSES]; /* something runs in the background */
static size_t lingering_count;

static void init_cgroup_name_of(const struct cgroup *c, const char *file, char out[64])
{
	snprintf(out, 64, "e%u%s%s", c->number, file[0] ? "/" : "", file);
}

/* Reads a short file into a fixed buffer: an allocation would be mapped for each. */
static bool read_short(const struct cgroup *c, const char *file, char out[SHORT_MAX])
{
	char name[64];
	init_cgroup_name_of(c, file, name);
	autoclose int fd = openat(INIT_CGROUP_FD, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, SHORT_MAX - 1);
	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

void cgroup_prepare(void)
{
	char name[64];
	struct cgroup c = {.number = counter + 1};
	if (spare_count > 0)
		return;
	init_cgroup_name_of(&c, "", name);
	if (mkdirat(INIT_CGROUP_FD, name, 0755) < 0)
		return;
	counter++;
	spares[spare_count++] = c;
}

int cgroup_take(struct cgroup *ret)
{
	char name[64];
	cgroup_prepare();
	if (spare_count == 0)
		return -EAGAIN;
	*ret = spares[--spare_count];
	init_cgroup_name_of(ret, "", name);
	int fd = openat(INIT_CGROUP_FD, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

void cgroup_kill(struct cgroup *c)
{
	char name[64];
	c->killed = true;
	init_cgroup_name_of(c, "cgroup.kill", name);
	fd_write_file_at(INIT_CGROUP_FD, name, "1");
}

/* ---- members ---- */

size_t cgroup_pids(const struct cgroup *c, pid_t *pids, size_t max)
{
	char name[64];
	autobuf text = {0};
	size_t count = 0;
	init_cgroup_name_of(c, "cgroup.procs", name);
	if (fd_read_file_at(INIT_CGROUP_FD, name, &text, PIDS_TEXT_MAX) < 0)
		return 0;
	buf_append_char(&text, '\0');
	if (text.failed)
		return 0;
	for (char *line = text.data; *line && count < max;) {
		char *end;
		long pid = strtol(line, &end, 10);
		if (end == line)
			break;
		/* The kernel shows 0 for a process outside our pid namespace. */
		if (pid > 0)
			pids[count++] = (pid_t)pid;
		line = end + (*end == '\n');
	}
	return count;
}

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
	return (x > y) - (x < y);
}

void cgroup_signal(const struct cgroup *c, int signal)
{
	autofree pid_t *done = calloc(PIDS_MAX, sizeof *done);
	autofree pid_t *now = calloc(PIDS_MAX, sizeof *now);
	size_t done_count = 0;
	for (int round = 0; done && now && round < SIGNAL_ROUNDS; round++) {
		size_t count = cgroup_pids(c, now, PIDS_MAX), sent = 0;
		for (size_t i = 0; i < count; i++) {
			if (bsearch(&now[i], done, done_count, sizeof *done, compare_pids))
				continue;
			kill(now[i], signal);
			sent++;
		}
		if (sent == 0)
			return;
		qsort(now, count, sizeof *now, compare_pids);
		memcpy(done, now, count * sizeof *now);
		done_count = count;
	}
}

uint64_t cgroup_cpu_us(const struct cgroup *c)
{
	char text[SHORT_MAX];
	static const char key[] = "usage_usec ";
	if (!read_short(c, "cpu.stat", text))
		return 0;
	const char *at = strstr(text, key);
	uint64_t total = at ? strtoull(at + sizeof key - 1, NULL, 10) : 0;
	return total > c->cpu_before_us ? total - c->cpu_before_us : 0;
}

/* ---- the end ---- */

bool cgroup_is_empty(const struct cgroup *c)
{
	char text[SHORT_MAX];
	return read_short(c, "cgroup.events", text) && strstr(text, "populated 0");
}

/* False while something lives in it. */
static bool init_cgroup_retire(struct cgroup *c)
{
	char name[64];
	if (!cgroup_is_empty(c))
		return false;
	/* A killed cgroup is not reused: a process cloned into it would be killed, too. */
	if (spare_count < SPARES_MAX && !c->killed) {
		c->cpu_before_us += cgroup_cpu_us(c);
		spares[spare_count++] = *c;
		return true;
	}
	init_cgroup_name_of(c, "", name);
	return unlinkat(INIT_CGROUP_FD, name, AT_REMOVEDIR) == 0;
}

void cgroup_release(struct cgroup *c)
{
	if (!init_cgroup_retire(c) && lingering_count < ARRAY_LEN(lingering))
		lingering[lingering_count++] = *c;
}

/*
 * Retries a few per call, in turns: the sandbox may keep many busy and end children all the time.
 */
void cgroup_retry_releases(void)
{
	static size_t next;
	size_t tries = lingering_count < RETRIES_MAX ? lingering_count : RETRIES_MAX;
	while (tries-- > 0) {
		next = next < lingering_count ? next : 0;
		if (init_cgroup_retire(&lingering[next]))
			lingering[next] = lingering[--lingering_count];
		else
			next++;
	}
}
