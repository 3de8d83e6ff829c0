#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Some file systems know more time than 64 bits of nanoseconds do. */
int64_t time_ns(const struct timespec *t)
{
	const int64_t most = INT64_MAX / 1000000000 - 1;
	int64_t seconds = t->tv_sec > most ? most : t->tv_sec < -most ? -most : t->tv_sec;
	return seconds * 1000000000 + t->tv_nsec;
}

/* Each name of the path with one slash in front; "." is left out. */
static void append_names(const char *path, struct buf *out)
{
	while (*path) {
		size_t len = strcspn(path, "/");
		if (len > 0 && !(len == 1 && path[0] == '.')) {
			buf_append_char(out, '/');
			buf_append(out, path, len);
		}
		path += len + (path[len] == '/');
	}
}

int path_absolute(const char *path, struct buf *out)
{
	char cwd[PATH_MAX];
	out->len = 0;
	if (path[0] != '/') {
		if (!getcwd(cwd, sizeof cwd))
			return -errno;
		append_names(cwd, out);
	}
	append_names(path, out);
	if (out->len == 0)
		buf_append_char(out, '/');
	buf_append_char(out, '\0');
	return out->failed ? -ENOMEM : 0;
}

/* Resolves a link. Returns the mode of its target, or `mode` if it is dangling. */
static mode_t files_entry_resolve(
	const char *path, char target[PATH_MAX], ssize_t *target_len, mode_t mode)
{
	struct stat st;
	char real[PATH_MAX];
	if (stat(path, &st) < 0 || !realpath(path, real))
		return mode;
	*target_len = (ssize_t)strlen(real);
	memcpy(target, real, (size_t)*target_len);
	return st.st_mode;
}

int put_entry(const char *path, const struct stat *st, int dir_fd, const char *name, uint32_t flags)
{
	char target[PATH_MAX];
	ssize_t target_len = 0;
	mode_t mode = st->st_mode;
	bool with_names = flags & FILE_WITH_NAMES;
	if (S_ISLNK(mode) && (target_len = readlinkat(dir_fd, name, target, sizeof target)) < 0)
		target_len = 0; /* it is gone, or another thing by now */
	if (S_ISLNK(mode) && flags & FILE_RESOLVED)
		mode = files_entry_resolve(path, target, &target_len, mode);
	struct record_text texts[4] = {{path, strlen(path)}, {target, (size_t)target_len}};
	if (with_names) {
		texts[2].data = name_of_user(st->st_uid);
		texts[2].len = strlen(texts[2].data);
		texts[3].data = name_of_group(st->st_gid);
		texts[3].len = strlen(texts[3].data);
	}
	struct record_entry e = {
		.size = (uint64_t)st->st_size,
		.mtime_ns = time_ns(&st->st_mtim),
		.atime_ns = time_ns(&st->st_atim),
		.ctime_ns = time_ns(&st->st_ctim),
		.inode = st->st_ino,
		.mode = mode,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.links = (uint32_t)st->st_nlink,
		.path_len = (uint32_t)texts[0].len,
		.target_len = (uint32_t)texts[1].len,
		.owner_len = (uint32_t)texts[2].len,
		.group_len = (uint32_t)texts[3].len,
	};
	int r = io_put(RECORD_ENTRY, &e, sizeof e, texts, 4);
	if (r < 0 || !(flags & FILE_WITH_ATTRIBUTES) || S_ISLNK(st->st_mode))
		return r;
	r = put_attributes(path);
	return r == -ENOENT || r == -EACCES ? 0 : r; /* it is gone, or not for this user */
}

int put_entry_of(const struct file_request *r, const char *path, bool follow)
{
	struct stat st;
	autobuf absolute = {0};
	if (fstatat(AT_FDCWD, path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	int e = path_absolute(path, &absolute);
	if (e < 0)
		return e;
	return put_entry(absolute.data, &st, AT_FDCWD, path, r->fixed.flags);
}
