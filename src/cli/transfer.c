#include "cli/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/job.h"

static bool is_pipe(const char *path)
{
	return strcmp(path, "-") == 0;
}

/* Devices and pipes are written as they are. */
static bool is_special(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static int open_temporary(struct transfer *t)
{
	autobuf name = {0};
	const char *slash = strrchr(t->path, '/');
	buf_append(&name, t->path, slash ? (size_t)(slash - t->path) + 1 : 0);
	buf_printf(&name, ".%s.XXXXXX", slash ? slash + 1 : t->path);
	t->temporary = buf_take_str(&name);
	return t->temporary ? mkostemp(t->temporary, O_CLOEXEC) : -1;
}

int cli_transfer_receive(struct transfer *t, const char *path, bool quiet)
{
	*t = (struct transfer){.path = path};
	if (is_pipe(path) && isatty(STDOUT_FILENO))
		return cli_report("this is not for a terminal; name a file");
	if (is_pipe(path))
		t->fd = dup(STDOUT_FILENO);
	else if (is_special(path))
		t->fd = open(path, O_WRONLY | O_CLOEXEC);
	else
		t->fd = open_temporary(t);
	if (t->fd < 0) {
		cli_report("%s: %s", path, strerror(errno));
		free(t->temporary);
		return -1;
	}
	cli_progress_begin(&t->progress, path, 0, quiet);
	return 0;
}

int cli_transfer_send(struct transfer *t, const char *path, bool quiet)
{
	struct stat st;
	*t = (struct transfer){.path = path};
	t->fd = is_pipe(path) ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	if (t->fd < 0 || fstat(t->fd, &st) < 0 || S_ISDIR(st.st_mode)) {
		if (t->fd >= 0) {
			close(t->fd);
			errno = EISDIR;
		}
		return cli_report("%s: %s", path, strerror(errno));
	}
	uint64_t size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	cli_progress_begin(&t->progress, path, size, quiet);
	return 0;
}

int cli_transfer_write(void *transfer, const void *data, size_t size)
{
	struct transfer *t = transfer;
	int r = fd_write_all(t->fd, data, size);
	if (r == 0) {
		cli_progress_add(&t->progress, size);
		return 0;
	}
	cli_progress_end(&t->progress);
	if (r != -EPIPE)
		cli_report("%s: %s", t->path, strerror(-r));
	return -1;
}

ptrdiff_t cli_transfer_read(void *transfer, char *data, size_t size)
{
	struct transfer *t = transfer;
	ssize_t n;
	do
		n = read(t->fd, data, size);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		cli_progress_end(&t->progress);
		cli_report("%s: %s", t->path, strerror(errno));
	} else {
		cli_progress_add(&t->progress, (uint64_t)n);
	}
	return n;
}

/* With the mode that a new file of ours has. */
static int transfer_give_name(struct transfer *t)
{
	mode_t mask = umask(0);
	umask(mask);
	if (fchmod(t->fd, 0666 & ~mask) < 0 || rename(t->temporary, t->path) < 0)
		return cli_report("%s: %s", t->path, strerror(errno));
	return 0;
}

int cli_transfer_end(struct transfer *t, int r, const struct bunker_error *e)
{
	cli_progress_end(&t->progress);
	if (r < 0 && strcmp(e->code, BUNKER_STOPPED) == 0)
		r = JOB_SAID;
	if (t->temporary && r == 0 && transfer_give_name(t) < 0)
		r = JOB_SAID;
	else if (t->temporary && r < 0)
		unlink(t->temporary);
	if (close(t->fd) < 0 && r == 0) {
		cli_report("%s: %s", t->path, strerror(errno));
		r = JOB_SAID;
	}
	free(t->temporary);
	return r;
}
