#include "init/files/files.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"

#define OUT_SIZE (64u * 1024)

static int peer = -1;
static char in[RECORD_HEADER_SIZE + RECORD_MAX];
static size_t in_start, in_end;
static char out[OUT_SIZE];
static size_t out_len;

void io_open(int fd)
{
	peer = fd;
	in_start = in_end = out_len = 0;
}

int io_fd(void)
{
	return peer;
}

static ssize_t read_some(char *bytes, size_t max)
{
	ssize_t n;
	do
		n = read(peer, bytes, max);
	while (n < 0 && errno == EINTR);
	return n > 0 ? n : -ECONNRESET;
}

/* At least this many bytes from in_start on. */
static int io_fill(size_t wanted)
{
	if (in_end - in_start >= wanted)
		return 0;
	memmove(in, in + in_start, in_end - in_start);
	in_end -= in_start;
	in_start = 0;
	while (in_end < wanted) {
		ssize_t n = read_some(in + in_end, sizeof in - in_end);
		if (n < 0)
			return (int)n;
		in_end += (size_t)n;
	}
	return 0;
}

int io_next(struct record_header *h)
{
	int r = io_fill(RECORD_HEADER_SIZE);
	if (r < 0)
		return r;
	r = record_decode_header(in + in_start, h);
	in_start += RECORD_HEADER_SIZE;
	return r;
}

int io_payload(const struct record_header *h, const char **payload)
{
	size_t size = (size_t)h->size;
	int r = h->type == RECORD_DATA ? -EPROTO : io_fill(size);
	if (r < 0)
		return r;
	*payload = in + in_start;
	in_start += size;
	return 0;
}

ssize_t io_data(char *bytes, size_t max)
{
	size_t ready = in_end - in_start;
	if (ready == 0)
		return read_some(bytes, max);
	size_t n = ready < max ? ready : max;
	memcpy(bytes, in + in_start, n);
	in_start += n;
	return (ssize_t)n;
}

/* Any write error means that the front is gone. */
static int io_lost(int r)
{
	return r < 0 ? -ECONNRESET : 0;
}

int io_flush(void)
{
	size_t len = out_len;
	out_len = 0;
	return io_lost(fd_write_all(peer, out, len));
}

int io_put_bytes(const void *bytes, size_t len)
{
	if (len > OUT_SIZE - out_len && io_flush() < 0)
		return -ECONNRESET;
	if (len > OUT_SIZE)
		return io_lost(fd_write_all(peer, bytes, len));
	memcpy(out + out_len, bytes, len);
	out_len += len;
	return 0;
}

int io_put(enum record_type type, const void *fixed, size_t size, const struct record_text *texts,
	size_t count)
{
	struct record_header h = {.type = type, .size = size};
	for (size_t i = 0; i < count; i++)
		h.size += texts[i].len;
	if (type != RECORD_DATA && h.size > RECORD_MAX)
		return -ENAMETOOLONG;
	int r = io_put_bytes(&h, sizeof h);
	if (r == 0 && size > 0)
		r = io_put_bytes(fixed, size);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (texts[i].len > 0)
			r = io_put_bytes(texts[i].data, texts[i].len);
	return r;
}
