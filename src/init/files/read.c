/*
 * READ: a whole file or a part of it. Its length is promised before the bytes are sent, and exactly
 * that much is sent: what a growing file has more is left, and when it shrinks the worker ends
 * without END. Files whose size says nothing (/proc) are read to their end.
 */
#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/processor.h"

#define SMALL (48u * 1024)

static int open_regular(const char *path, struct stat *st)
{
	/* openat: musl's open asks the kernel a second time for O_CLOEXEC. */
	autoclose int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, st) < 0)
		return -errno;
	if (S_ISDIR(st->st_mode))
		return -EISDIR;
	return S_ISREG(st->st_mode) ? take_fd(&fd) : -ENXIO;
}

/* To the end, or `wanted` bytes; `expected` of them, if any, are known to be all there are. */
static ssize_t read_full(int fd, char *bytes, size_t wanted, uint64_t expected)
{
	size_t got = 0;
	while (got < wanted && (got == 0 || got != expected)) {
		ssize_t n = read(fd, bytes + got, wanted - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

static int read_put_content(uint64_t length, uint64_t offset)
{
	struct record_content content = {.length = length, .offset = offset};
	return io_put(RECORD_CONTENT, &content, sizeof content, NULL, 0);
}

static int read_put_data(const char *bytes, size_t len)
{
	struct record_text text = {bytes, len};
	return io_put(RECORD_DATA, NULL, 0, &text, len > 0);
}

/* Bytes that were promised: without a copy where the filesystem allows it. */
static int send_promised(int fd, uint64_t left)
{
	static char chunk[64 * 1024];
	int r = io_flush();
	if (left > FILE_IS_LARGE)
		processor_stay(0);
	while (r == 0 && left > 0) {
		size_t most = left < (1u << 30) ? (size_t)left : 1u << 30;
		ssize_t n = sendfile(io_fd(), fd, NULL, most);
		if (n < 0 && (errno == EINVAL || errno == ENOSYS)) {
			most = most < sizeof chunk ? most : sizeof chunk;
			n = read(fd, chunk, most);
			if (n > 0)
				r = io_put_bytes(chunk, (size_t)n);
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -ECONNRESET; /* it shrank, or cannot be read after all */
		left -= (uint64_t)n;
	}
	return r;
}

/* To the end, wherever that is. */
static int send_unknown(int fd, const char *first, size_t first_len, uint64_t offset, uint64_t left)
{
	static char chunk[64 * 1024];
	int r = read_put_content(RECORD_UNKNOWN, offset);
	if (r == 0)
		r = read_put_data(first, first_len);
	left -= first_len;
	while (r == 0 && left > 0) {
		ssize_t n = read(fd, chunk, left < sizeof chunk ? (size_t)left : sizeof chunk);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		left -= (uint64_t)n;
		r = read_put_data(chunk, (size_t)n);
	}
	return r;
}

static int send_small(int fd, uint64_t offset, uint64_t wanted, uint64_t there)
{
	static char first[SMALL + 1];
	size_t most = wanted < sizeof first ? (size_t)wanted : sizeof first;
	ssize_t n = read_full(fd, first, most, there);
	if (n < 0)
		return (int)n;
	if ((size_t)n == sizeof first)
		return send_unknown(fd, first, (size_t)n, offset, wanted);
	/* The whole range was read, or the file ended. */
	int r = read_put_content((uint64_t)n, offset);
	return r < 0 ? r : read_put_data(first, (size_t)n);
}

static int send_large(int fd, uint64_t offset, uint64_t length)
{
	struct record_header h = {.type = RECORD_DATA, .size = length};
	int r = read_put_content(length, offset);
	if (r == 0)
		r = io_put_bytes(&h, sizeof h);
	return r < 0 ? r : send_promised(fd, length);
}

int file_read(const struct file_request *r, struct outcome *o)
{
	struct stat st;
	autobuf path = {0};
	uint64_t offset = r->fixed.offset, wanted = r->fixed.length;
	(void)o;
	autoclose int fd = open_regular(r->text[FILE_PATH], &st);
	if (fd < 0)
		return fd;
	uint64_t size = (uint64_t)st.st_size;
	if (r->fixed.flags & FILE_FROM_END)
		offset = offset < size ? size - offset : 0;
	if (offset > INT64_MAX || (offset > 0 && lseek(fd, (off_t)offset, SEEK_SET) < 0))
		return -EINVAL;
	int e = path_absolute(r->text[FILE_PATH], &path);
	if (e == 0)
		e = put_entry(path.data, &st, AT_FDCWD, "", r->fixed.flags);
	if (e < 0)
		return e;
	uint64_t there = offset < size ? size - offset : 0;
	if (there <= SMALL)
		return send_small(fd, offset, wanted, there);
	return send_large(fd, offset, wanted < there ? wanted : there);
}
