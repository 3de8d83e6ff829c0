#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

int fd_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;
	while (len > 0) {
		ssize_t n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EPIPE;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int fd_read_all(int fd, struct buf *out, size_t max)
{
	size_t total = 0;
	for (;;) {
		if (!buf_reserve(out, 4096))
			return -ENOMEM;
		ssize_t n = read(fd, out->data + out->len, out->cap - out->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		out->len += (size_t)n;
		total += (size_t)n;
		if (total > max)
			return -EFBIG;
	}
}

int fd_read_file_at(int dir_fd, const char *path, struct buf *out, size_t max)
{
	autoclose int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fd_read_all(fd, out, max);
}

int64_t fd_read_number_at(int dir_fd, const char *path, const char *key)
{
	autobuf text = {0};
	if (fd_read_file_at(dir_fd, path, &text, 64 * 1024) < 0)
		return 0;
	buf_append_char(&text, '\0');
	if (text.failed)
		return 0;
	size_t len = strlen(key);
	for (const char *line = text.data; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (len == 0)
			return strtoll(line, NULL, 10);
		if (strncmp(line, key, len) == 0 && line[len] == ' ')
			return strtoll(line + len, NULL, 10);
	}
	return 0;
}

int fd_write_file_at(int dir_fd, const char *path, const char *text)
{
	autoclose int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n;
	do
		n = write(fd, text, strlen(text));
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int fd_seal_copy(const char *name, const void *data, size_t len)
{
	autoclose int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	int r = fd_write_all(fd, data, len);
	if (r < 0)
		return r;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	return take_fd(&fd);
}

void fd_widen(int socket_fd)
{
	int size = 1 << 20; /* cut to the system's limit, then doubled */
	(void)setsockopt(socket_fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}
