/*
 * Output that nobody can lose. The first OUTPUT_IN_MEMORY bytes stay unacknowledged, so init keeps
 * them, too; from then on bytes are in the spool file before init may forget them. What is beyond
 * the limit is dropped, unless somebody paced is reading: then it waits in `tail` and init waits
 * with it. Of a terminal the last bytes stay there, and with init, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "box/process/execution_core.h"
#include "box/sandbox/object.h"

void output_init(struct output *o)
{
	*o = (struct output){.fd = -1};
}

void output_finish(struct output *o)
{
	buf_finish(&o->memory);
	buf_finish(&o->tail);
	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
}

void output_path(const struct box *b, const char *execution, unsigned stream, char out[256])
{
	snprintf(out, 256, "%s/%s.%u", b->config.spool_dir, execution, stream);
}

void output_restore(struct output *o, const char *path)
{
	struct stat st;
	o->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (o->fd >= 0 && fstat(o->fd, &st) == 0)
		o->stored = o->end = (uint64_t)st.st_size;
}

/* From memory to a file: from now on every byte is on disk before it is acknowledged. */
static int process_output_spill(struct output *o, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	int r = fd_write_all(fd, o->memory.data, o->memory.len);
	if (r < 0) {
		close(fd);
		unlink(path);
		return r;
	}
	o->fd = fd;
	buf_finish(&o->memory);
	return 0;
}

static int process_output_keep(struct output *o, const char *path, const char *data, size_t len)
{
	if (o->fd < 0 && o->stored + len <= OUTPUT_IN_MEMORY) {
		buf_append(&o->memory, data, len);
		return o->memory.failed ? -ENOMEM : 0;
	}
	int r = o->fd < 0 ? process_output_spill(o, path) : 0;
	while (r == 0 && len > 0) {
		ssize_t n = pwrite(o->fd, data, len, (off_t)o->stored);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		len -= (size_t)n;
		o->stored += (size_t)n;
	}
	return r;
}

/* Keeps as much as the limit and the disk allow; returns how much that was. */
static size_t keep_some(
	struct output *o, const char *path, uint64_t limit, const char *data, size_t len)
{
	/* What is kept is the beginning, without a hole. */
	if (o->full || o->stored >= limit || o->stored != o->end)
		return 0;
	size_t part = limit - o->stored < len ? (size_t)(limit - o->stored) : len;
	uint64_t before = o->stored;
	int r = process_output_keep(o, path, data, part);
	if (r < 0) {
		log_warn("cannot spool output", "path", path, "error", strerror(-r));
		o->full = true;
	} else if (o->fd < 0) {
		o->stored += part;
	}
	return (size_t)(o->stored - before);
}

int output_append(struct output *o, const char *path, uint64_t limit, bool keep_tail,
	uint64_t offset, const char *data, size_t len)
{
	if (offset > o->end)
		return -EPROTO;
	if (offset + len <= o->end)
		return 0;
	data += o->end - offset;
	len -= (size_t)(o->end - offset);
	size_t kept = keep_some(o, path, limit, data, len);
	o->end += len;
	if (kept == len)
		return 0;
	/* Init will be told to forget more than we keep: then what we keep must be on disk. */
	if (o->fd < 0 && !o->full && process_output_spill(o, path) < 0)
		o->full = true;
	if (!keep_tail) {
		buf_finish(&o->tail);
		o->tail_start = o->end;
		return 0;
	}
	if (o->tail.len == 0)
		o->tail_start = o->end - (len - kept);
	buf_append(&o->tail, data + kept, len - kept);
	return o->tail.failed ? -ENOMEM : 0;
}

uint64_t output_release(struct output *o, uint64_t slowest)
{
	if (o->fd < 0 && o->stored == o->end)
		return 0;
	uint64_t held = o->end < o->recent ? o->end : o->recent;
	if (slowest > o->end - held)
		slowest = o->end - held;
	if (slowest < o->stored)
		slowest = o->stored;
	if (o->tail.len > 0 && slowest > o->tail_start) {
		buf_consume(&o->tail, (size_t)(slowest - o->tail_start));
		o->tail_start = slowest;
	}
	return slowest;
}

void output_copy(const struct output *o, struct output_copy *ret)
{
	*ret = (struct output_copy){.fd = -1, .length = o->stored};
	if (o->fd >= 0)
		ret->fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 3);
	else
		buf_append(&ret->memory, o->memory.data, o->memory.len);
	if (o->fd >= 0 && ret->fd < 0)
		ret->length = 0; /* no descriptor is left: the answer comes without output */
}

void output_copy_finish(struct output_copy *c)
{
	buf_finish(&c->memory);
	if (c->fd >= 0)
		close(c->fd);
	*c = (struct output_copy){.fd = -1};
}

static int read_part(
	const struct buf *memory, int fd, uint64_t position, size_t len, struct buf *out)
{
	if (fd < 0) {
		buf_append(out, memory->data + position, len);
		return (int)len;
	}
	if (!buf_reserve(out, len))
		return -ENOMEM;
	ssize_t n = pread(fd, out->data + out->len, len, (off_t)position);
	if (n <= 0)
		return n < 0 ? -errno : -EIO;
	out->len += (size_t)n;
	return (int)n;
}

int output_copy_read(const struct output_copy *c, uint64_t *position, size_t max, struct buf *out)
{
	size_t len = c->length - *position < max ? (size_t)(c->length - *position) : max;
	int n = len > 0 ? read_part(&c->memory, c->fd, *position, len, out) : 0;
	if (n > 0)
		*position += (uint64_t)n;
	return n < 0 ? n : 0;
}

int output_read(const struct output *o, uint64_t *position, size_t max, struct buf *out)
{
	if (*position < o->stored) {
		size_t stored = (size_t)(o->stored - *position);
		int n = read_part(&o->memory, o->fd, *position, stored < max ? stored : max, out);
		if (n > 0)
			*position += (uint64_t)n;
		return n < 0 ? n : 0;
	}
	if (*position >= o->end)
		return 0;
	uint64_t tail_start = o->tail.len ? o->tail_start : o->end;
	if (*position < tail_start)
		*position = tail_start; /* what was here is gone */
	size_t left = (size_t)(o->end - *position);
	size_t len = left < max ? left : max;
	if (o->tail.len)
		buf_append(out, o->tail.data + (*position - tail_start), len);
	*position += len;
	return 0;
}
