#include "base/fd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

DIR *fd_open_dir_at(int dir_fd, const char *path)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (fd >= 0 && !dir)
		close(fd);
	return dir;
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

int fd_write_number_at(int dir_fd, const char *path, int64_t value)
{
	char text[32];
	snprintf(text, sizeof text, "%lld", (long long)value);
	return fd_write_file_at(dir_fd, path, text);
}

int fd_keep_file_at(int dir_fd, const char *path, const char *text)
{
	char aside[64];
	autobuf now = {0};
	size_t len = strlen(text);
	if (fd_read_file_at(dir_fd, path, &now, len) == 0 && now.data && now.len == len &&
		memcmp(now.data, text, len) == 0)
		return 0;
	snprintf(aside, sizeof aside, "%s.new", path);
	autoclose int fd =
		openat(dir_fd, aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? -errno : fd_write_all(fd, text, len);
	if (r == 0 && (fsync(fd) < 0 || renameat(dir_fd, aside, dir_fd, path) < 0))
		r = -errno;
	if (r < 0)
		unlinkat(dir_fd, aside, 0);
	return r;
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

int fd_send_many(
	int socket_fd, const void *data, size_t len, const int *fds, size_t count, int flags)
{
	union {
		char space[CMSG_SPACE(FD_SEND_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec bytes = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
	assert(count <= FD_SEND_MAX);
	if (count > 0) {
		message.msg_control = control.space;
		message.msg_controllen = (socklen_t)CMSG_SPACE(count * sizeof(int));
		struct cmsghdr *c = &control.align; /* the first, as CMSG_FIRSTHDR says it */
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = (socklen_t)CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	return sendmsg(socket_fd, &message, flags | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int fd_send(int socket_fd, const void *data, size_t len, int fd, int flags)
{
	return fd_send_many(socket_fd, data, len, &fd, fd >= 0, flags);
}

void fd_widen(int socket_fd)
{
	int size = 1 << 20; /* cut to the system's limit, then doubled */
	(void)setsockopt(socket_fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}
