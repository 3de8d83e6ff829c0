/* Whole reads and writes on file descriptors, with EINTR handled. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;

/* Returns r, or -errno if the call has failed. */
static inline int fd_or_errno(long r)
{
	return r < 0 ? -errno : (int)r;
}

/* 0, or -errno; -EPIPE on a short write to something that takes no more. */
int fd_write_all(int fd, const void *data, size_t len);
/* Reads from the current offset to the end of the file. Returns -EFBIG beyond max bytes. */
int fd_read_all(int fd, struct buf *out, size_t max);
/* The whole of a small file, relative to dir_fd (or AT_FDCWD). */
int fd_read_file_at(int dir_fd, const char *path, struct buf *out, size_t max);
/* The number in a "key 123" line of a small file, or in a file that is just a number (key ""); 0
 * when it is not there. */
int64_t fd_read_number_at(int dir_fd, const char *path, const char *key);
/* A directory to read, from its beginning; NULL when it cannot be opened. */
DIR *fd_open_dir_at(int dir_fd, const char *path);
/* Writes to an existing file (procfs, cgroupfs, sysfs) in one write. */
int fd_write_file_at(int dir_fd, const char *path, const char *text);
/* Writes a number as text. */
int fd_write_number_at(int dir_fd, const char *path, int64_t value);
/*
 * Has a small file of the owner's own with this content, which is there as a whole or not at all.
 * Writes nothing when it has it already.
 */
int fd_keep_file_at(int dir_fd, const char *path, const char *text);
/* A sealed memfd with the given content, close-on-exec. */
int fd_seal_copy(const char *name, const void *data, size_t len);
/* One message, with a descriptor that stays the caller's (-1: none). */
int fd_send(int socket_fd, const void *data, size_t len, int fd, int flags);
#define FD_SEND_MAX 3
/* The same with up to FD_SEND_MAX descriptors. */
int fd_send_many(
	int socket_fd, const void *data, size_t len, const int *fds, size_t count, int flags);
/* Grows a socket's send buffer to the system's limit for unprivileged processes. */
void fd_widen(int socket_fd);
