/* UNPACK of a tar archive, as it comes. */
#include <errno.h>

#include "base/fd.h"
#include "init/files/unpack.h"

/* The member's content into fd, or, with -1, past it. */
static int unpack_tar_take_content(struct unpacking *u, int fd)
{
	static char chunk[256 * 1024];
	uint64_t size = u->member->size;
	if (size > INT64_MAX - TAR_BLOCK)
		return -EBADMSG;
	uint64_t left = (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
	while (left > 0) {
		size_t n = left < sizeof chunk ? (size_t)left : sizeof chunk;
		int r = unpack_input(u, chunk, n);
		if (r != 0)
			return r == 1 ? -EBADMSG : r;
		size_t useful = size < n ? (size_t)size : n;
		if (fd >= 0 && (r = fd_write_all(fd, chunk, useful)) < 0)
			return r;
		left -= n;
		size -= useful;
	}
	return 0;
}

static int read_members(struct unpacking *u, struct tar_reader *tar)
{
	char rest[TAR_BLOCK];
	int r;
	while ((r = tar_next(tar)) > 0) {
		r = unpack_take(u);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	/* Drains the input behind the end of the archive. */
	while (r == 0)
		r = unpack_input(u, rest, sizeof rest);
	return r < 0 && r != -EBADMSG ? r : 0;
}

static int unpack_tar_read_input(void *arg, char *bytes, size_t len)
{
	return unpack_input(arg, bytes, len);
}

static int read_tar(struct unpacking *u)
{
	struct tar_reader tar = {.read = unpack_tar_read_input, .arg = u};
	u->member = &tar.member;
	int r = read_members(u, &tar);
	u->member = NULL;
	tar_reader_finish(&tar);
	return r;
}

const struct unpack_format unpack_tar = {read_tar, unpack_tar_take_content};
