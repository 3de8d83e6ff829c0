/*
 * PACK: a directory as an archive, or a file as one with a single member. Members are named
 * relative to the directory, which is itself the first ("./"). Sockets are left out. A file with
 * several names is a hard link from the second on, unless the archive becomes one that has none. A
 * file that shrinks meanwhile is filled up with zeros, as its header has promised its length.
 */
#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"

#define SMALL (32u * 1024)

static int pack_put_data(const char *bytes, size_t len)
{
	struct record_text text = {bytes, len};
	return io_put(RECORD_DATA, NULL, 0, &text, 1);
}

static int put_zeros(uint64_t len)
{
	static const char zeros[16 * TAR_BLOCK];
	int r = 0;
	while (r == 0 && len > 0) {
		size_t n = len < sizeof zeros ? (size_t)len : sizeof zeros;
		r = io_put_bytes(zeros, n);
		len -= n;
	}
	return r;
}

/* Sends up to *left bytes of the file; *left becomes the number of bytes missing. */
static int pack_put_content(int fd, uint64_t *left)
{
	static char chunk[SMALL];
	int r = *left > sizeof chunk ? io_flush() : 0;
	while (r == 0 && *left > 0) {
		ssize_t n = -1;
		bool large = *left > sizeof chunk;
		if (large)
			n = sendfile(
				io_fd(), fd, NULL, *left < (1u << 30) ? (size_t)*left : 1u << 30);
		if (large && n < 0 && errno == EPIPE)
			return -ECONNRESET;
		if (!large || (n < 0 && (errno == EINVAL || errno == ENOSYS))) {
			n = read(fd, chunk, large ? sizeof chunk : (size_t)*left);
			if (n > 0)
				r = io_put_bytes(chunk, (size_t)n);
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		*left -= (uint64_t)n;
	}
	return r;
}

static int pack_put_file(int fd, uint64_t size)
{
	uint64_t padding = (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK, left = size;
	struct record_header h = {.type = RECORD_DATA, .size = size + padding};
	if (size == 0)
		return 0;
	int r = io_put_bytes(&h, sizeof h);
	if (r == 0)
		r = pack_put_content(fd, &left);
	/* From here on the archive cannot be saved: it was promised. */
	return r < 0 ? -ECONNRESET : put_zeros(left + padding);
}

static int put_header(struct tar_member *m)
{
	autobuf header = {0};
	tar_append_header(&header, m);
	return header.failed ? -ENOMEM : pack_put_data(header.data, header.len);
}

static void pack_set_text(struct buf *out, const char *text, size_t len, const char *end)
{
	out->len = 0;
	buf_append(out, text, len);
	buf_append(out, end, strlen(end) + 1);
}

static void pack_describe(struct tar_member *m, const struct stat *st, const char *path)
{
	m->size = 0;
	m->mode = st->st_mode & 07777;
	m->uid = st->st_uid;
	m->gid = st->st_gid;
	m->mtime_s = st->st_mtim.tv_sec;
	m->mtime_ns = (uint32_t)st->st_mtim.tv_nsec;
	m->major = m->minor = 0;
	m->target.len = 0;
	pack_set_text(&m->path, path, strlen(path), S_ISDIR(st->st_mode) ? "/" : "");
}

static int pack_regular(struct tar_member *m, int dir_fd, const char *name, const char *path)
{
	struct stat st;
	autoclose int fd =
		openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st.st_mode))
		return 0; /* it became another thing since we looked */
	pack_describe(m, &st, path);
	m->type = '0';
	m->size = (uint64_t)st.st_size;
	int r = put_header(m);
	return r < 0 ? r : pack_put_file(fd, m->size);
}

static int pack_link(struct tar_member *m, int dir_fd, const char *name)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(dir_fd, name, target, sizeof target);
	if (len < 0)
		return errno == ENOENT || errno == EINVAL ? 0 : -errno;
	m->type = '2';
	pack_set_text(&m->target, target, (size_t)len, "");
	return put_header(m);
}

static int pack_entry(struct tar_member *m, struct hard_links *links, int dir_fd, const char *name,
	const char *path)
{
	struct stat st;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISSOCK(st.st_mode))
		return 0;
	pack_describe(m, &st, path);
	const char *seen = links && !S_ISDIR(st.st_mode) && st.st_nlink > 1
				   ? hard_links_seen(links, &st, path)
				   : NULL;
	if (seen) {
		m->type = '1';
		pack_set_text(&m->target, seen, strlen(seen), "");
		return put_header(m);
	}
	if (S_ISREG(st.st_mode))
		return pack_regular(m, dir_fd, name, path);
	if (S_ISLNK(st.st_mode))
		return pack_link(m, dir_fd, name);
	m->type = S_ISDIR(st.st_mode)    ? '5'
		  : S_ISFIFO(st.st_mode) ? '6'
		  : S_ISCHR(st.st_mode)  ? '3'
					 : '4';
	m->major = major(st.st_rdev);
	m->minor = minor(st.st_rdev);
	return put_header(m);
}

static int pack_below(struct tar_member *m, struct hard_links *links, int fd, struct outcome *o)
{
	struct walk w;
	int r = walk_open(&w, fd, "", SIZE_MAX);
	while (r >= 0 && (r = walk_next(&w)) > 0) {
		o->count++;
		r = pack_entry(m, links, walk_fd(&w), w.name, w.path.data);
		if (r == 0 && w.type == DT_DIR)
			r = walk_enter(&w);
		if (r < 0)
			serve_fail(o, r, w.path.data);
	}
	walk_finish(&w);
	return r;
}

/* Takes fd, which is the directory. */
static int pack_directory(int fd, struct tar_member *m, bool has_links, struct outcome *o)
{
	struct hard_links links = {0};
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0) {
		pack_describe(m, &st, ".");
		m->type = '5';
		r = put_header(m);
	}
	if (r == 0)
		r = pack_below(m, has_links ? &links : NULL, fd, o);
	else
		close(fd);
	hard_links_finish(&links);
	return r;
}

static int pack_begin(void)
{
	struct record_content content = {.length = RECORD_UNKNOWN};
	return io_put(RECORD_CONTENT, &content, sizeof content, NULL, 0);
}

static int pack_finish(void)
{
	static const char end[2 * TAR_BLOCK];
	return pack_put_data(end, sizeof end);
}

int file_pack(const struct file_request *r, struct outcome *o)
{
	struct tar_member m = {0};
	struct stat st;
	const char *path = r->text[FILE_PATH], *slash = strrchr(path, '/');
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && (errno != ENOTDIR || stat(path, &st) < 0))
		return -errno;
	/* Reports an unreadable file now, while an error can still be answered. */
	if (fd < 0 && (!S_ISREG(st.st_mode) || access(path, R_OK) < 0))
		return S_ISREG(st.st_mode) ? -errno : -ENXIO;
	int e = pack_begin();
	if (e == 0 && fd >= 0)
		e = pack_directory(fd, &m, !(r->fixed.flags & FILE_ZIP), o);
	else if (e == 0)
		e = pack_regular(&m, AT_FDCWD, path, slash ? slash + 1 : path);
	if (e == 0)
		e = pack_finish();
	tar_member_finish(&m);
	return e;
}
