/*
 * Measures a process and everything it started, by their cgroup. The only text that a process can
 * choose is its name, which /proc gives with line ends escaped.
 */
#include "init/init.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

/* Each costs two system calls, and init must not be kept busy. */
#define MEASURED_MAX 256

static uint64_t field_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void add_process(pid_t pid, bool is_main, struct frame_status *s)
{
	char path[64];
	autobuf text = {0};
	snprintf(path, sizeof path, "/proc/%d/status", pid);
	if (fd_read_file_at(AT_FDCWD, path, &text, 16 * 1024) < 0)
		return;
	buf_append_char(&text, '\0');
	if (text.failed)
		return;
	const char *state = strstr(text.data, "\nState:\t");
	if (is_main && state)
		s->state = (unsigned char)state[8];
	uint64_t peak = field_of(text.data, "\nVmHWM:") * 1024;
	s->memory += field_of(text.data, "\nVmRSS:") * 1024;
	s->peak = peak > s->peak ? peak : s->peak;
}

void inspect_process(const struct process *p, struct buf *out)
{
	static pid_t pids[MEASURED_MAX];
	struct frame_status status = {.cpu_us = cgroup_cpu_us(&p->cgroup)};
	char path[64], cwd[FRAME_MAX_TEXT] = "";
	size_t count = cgroup_pids(&p->cgroup, pids, MEASURED_MAX);
	status.processes = (uint32_t)count;
	for (size_t i = 0; i < count; i++)
		add_process(pids[i], pids[i] == p->pid && !p->exited, &status);
	if (p->exited && (uint64_t)p->exit.max_rss_kib * 1024 > status.peak)
		status.peak = (uint64_t)p->exit.max_rss_kib * 1024;
	snprintf(path, sizeof path, "/proc/%d/cwd", p->pid);
	ssize_t len = p->exited ? 0 : readlink(path, cwd, sizeof cwd - 1);
	cwd[len > 0 ? len : 0] = '\0';
	buf_append(out, &status, sizeof status);
	buf_append(out, cwd, strlen(cwd) + 1);
}
