/*
 * UNPACK: an archive into a directory, and never out of it. Names with ".." and absolute ones are
 * refused; every directory on the way to a member is looked up by the kernel "beneath" the target,
 * so that a link that leads outside, from the archive or there before, ends the extraction with
 * EXDEV. The last name is made new: a link or file that is there is removed, not written through.
 * Devices are refused. Owners, and set-id bits with them, are restored only when asked for and only
 * by root.
 */
#include "init/files/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/cleanup.h"

#define LATER_MAX (4u << 20)

/* ---- the archive's bytes ---- */

static int unpack_next_data(struct unpacking *u)
{
	struct record_header h;
	const char *payload;
	int r = io_next(&h);
	if (r < 0)
		return r;
	u->ended = h.type == RECORD_END;
	if (u->ended)
		return io_payload(&h, &payload);
	u->data_left = h.size;
	return h.type == RECORD_DATA ? 0 : -EPROTO;
}

ssize_t unpack_some_input(struct unpacking *u, char *bytes, size_t max)
{
	while (u->data_left == 0 && !u->ended) {
		int r = unpack_next_data(u);
		if (r < 0)
			return r;
	}
	if (u->data_left == 0)
		return 0;
	ssize_t n = io_data(bytes, max < u->data_left ? max : (size_t)u->data_left);
	if (n > 0)
		u->data_left -= (uint64_t)n;
	return n;
}

int unpack_input(struct unpacking *u, char *bytes, size_t len)
{
	for (size_t got = 0; got < len;) {
		ssize_t n = unpack_some_input(u, bytes + got, len - got);
		if (n < 0)
			return (int)n;
		if (n == 0)
			return got == 0 ? 1 : -EBADMSG;
		got += (size_t)n;
	}
	return 0;
}

/* ---- places ---- */

/* An image's links are about the root that it will be. */
static enum beneath_links links_of(const struct unpacking *u)
{
	return u->is_layer ? BENEATH_IS_ROOT : BENEATH_STAYS;
}

static int unpack_open_beneath(const struct unpacking *u, const char *path, int flags)
{
	return beneath_open(u->top, path, flags, links_of(u));
}

/* The directory in which the member is, and its name there. */
static int find_place(struct unpacking *u, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;
	*name = slash ? slash + 1 : path;
	if (u->parent >= 0 && u->parent_path.len == len + 1 &&
		(len == 0 || memcmp(u->parent_path.data, path, len) == 0))
		return u->parent;
	if (u->parent >= 0)
		close(u->parent);
	u->parent_path.len = 0;
	buf_append(&u->parent_path, path, len);
	buf_append_char(&u->parent_path, '\0');
	u->parent = u->parent_path.failed ? -ENOMEM
					  : beneath_make(u->top, u->parent_path.data, links_of(u));
	return u->parent;
}

/* Removes an entry in the member's place, unless it is a directory. */
static int unpack_make_room(int dir_fd, const char *name)
{
	return unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* ---- members ---- */

static bool keeps_owners(const struct unpacking *u)
{
	return ((u->request->fixed.flags & FILE_OWNERS) || u->uid != (uid_t)-1 ||
		       u->gid != (gid_t)-1) &&
	       geteuid() == 0;
}

/* Returns the requested owner, otherwise the archive's. */
static uid_t unpack_owner_of(const struct unpacking *u, uid_t archived)
{
	return u->uid != (uid_t)-1 ? u->uid : archived;
}

static gid_t group_of(const struct unpacking *u, gid_t archived)
{
	return u->gid != (gid_t)-1 ? u->gid : archived;
}

static int unpack_settle(const struct unpacking *u, int fd, const struct later *l)
{
	struct timespec times[2] = {{0, UTIME_OMIT}, {l->mtime_s, l->mtime_ns}};
	bool owners = keeps_owners(u);
	if (owners && fchown(fd, unpack_owner_of(u, l->uid), group_of(u, l->gid)) < 0)
		return -errno;
	mode_t mode = l->mode & (owners ? 07777 : 0777);
	if (u->request->fixed.flags & FILE_HAS_MODE)
		mode = u->request->fixed.mode & 07777;
	if (fchmod(fd, mode) < 0 || futimens(fd, times) < 0)
		return -errno;
	return 0;
}

static struct later unpack_state_of(const struct tar_member *m)
{
	return (struct later){m->mode, m->uid, m->gid, m->mtime_ns, m->mtime_s, 0};
}

static int unpack_file(struct unpacking *u, int dir_fd, const char *name)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	autoclose int fd = openat(dir_fd, name, flags, 0600);
	if (fd < 0 && errno == EEXIST) {
		int r = unpack_make_room(dir_fd, name);
		if (r < 0)
			return r;
		fd = openat(dir_fd, name, flags, 0600);
	}
	if (fd < 0)
		return -errno;
	int r = u->format->take_content(u, fd);
	struct later state = unpack_state_of(u->member);
	return r < 0 ? r : unpack_settle(u, fd, &state);
}

/* Sets time and owner of a member that is not opened: a link or a FIFO. */
static int settle_at(const struct unpacking *u, int dir_fd, const char *name)
{
	const struct tar_member *m = u->member;
	struct timespec times[2] = {{0, UTIME_OMIT}, {m->mtime_s, m->mtime_ns}};
	utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW);
	if (keeps_owners(u) && fchownat(dir_fd, name, unpack_owner_of(u, m->uid),
				       group_of(u, m->gid), AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

static int unpack_symlink(struct unpacking *u, int dir_fd, const char *name)
{
	const struct tar_member *m = u->member;
	if (symlinkat(m->target.data, dir_fd, name) < 0) {
		int r = errno == EEXIST ? unpack_make_room(dir_fd, name) : -errno;
		if (r < 0)
			return r;
		if (symlinkat(m->target.data, dir_fd, name) < 0)
			return -errno;
	}
	return settle_at(u, dir_fd, name);
}

/* To a file that is in the target already, found by the same rules as the members. */
static int unpack_hard_link(struct unpacking *u, int dir_fd, const char *name)
{
	char *target = u->member->target.data;
	while (u->is_layer && *target == '/')
		target++;
	if (!tar_clean_path(target) || !target[0])
		return -EXDEV;
	char *slash = strrchr(target, '/');
	if (slash)
		*slash = '\0';
	autoclose int from = unpack_open_beneath(u, slash ? target : "", O_PATH | O_DIRECTORY);
	const char *old = slash ? slash + 1 : target;
	struct stat a, b;
	if (from < 0)
		return from;
	if (fstatat(from, old, &a, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (fstatat(dir_fd, name, &b, AT_SYMLINK_NOFOLLOW) == 0) {
		if (a.st_dev == b.st_dev && a.st_ino == b.st_ino)
			return 0;
		int r = unpack_make_room(dir_fd, name);
		if (r < 0)
			return r;
	}
	return linkat(from, old, dir_fd, name, 0) < 0 ? -errno : 0;
}

static int unpack_fifo(struct unpacking *u, int dir_fd, const char *name)
{
	int r = unpack_make_room(dir_fd, name);
	if (r < 0)
		return r;
	if (mkfifoat(dir_fd, name, u->member->mode & 0777) < 0)
		return -errno;
	return settle_at(u, dir_fd, name);
}

/* ---- directories ---- */

static int unpack_apply_later(struct unpacking *u)
{
	int r = 0;
	while (r == 0 && u->later_count > 0) {
		const struct later *l = &u->later[--u->later_count];
		int fd = unpack_open_beneath(
			u, u->later_paths.data + l->path, O_RDONLY | O_DIRECTORY);
		if (fd < 0)
			continue; /* removed since, or not permitted */
		r = unpack_settle(u, fd, l);
		close(fd);
	}
	u->later_count = 0;
	u->later_paths.len = 0;
	return r;
}

static int unpack_remember(struct unpacking *u, const char *path)
{
	struct later l = unpack_state_of(u->member);
	if (u->later_paths.len > LATER_MAX) {
		int r = unpack_apply_later(u);
		if (r < 0)
			return r;
	}
	if (u->later_count == u->later_capacity) {
		size_t capacity = u->later_capacity ? u->later_capacity * 2 : 64;
		struct later *grown = realloc(u->later, capacity * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		u->later = grown;
		u->later_capacity = capacity;
	}
	l.path = u->later_paths.len;
	buf_append(&u->later_paths, path, strlen(path) + 1);
	u->later[u->later_count++] = l;
	return u->later_paths.failed ? -ENOMEM : 0;
}

static int unpack_directory(struct unpacking *u, int dir_fd, const char *name, const char *path)
{
	mode_t mode = (u->member->mode & 0777) | 0700;
	if (mkdirat(dir_fd, name, mode) < 0) {
		if (errno != EEXIST)
			return -errno;
		int fd = unpack_open_beneath(u, path, O_PATH | O_DIRECTORY);
		if (fd < 0)
			return fd;
		close(fd);
	}
	return unpack_remember(u, path);
}

/* ---- all of it ---- */

static int unpack_member(struct unpacking *u, const char *path)
{
	const char *name;
	int dir_fd = find_place(u, path, &name);
	if (dir_fd < 0)
		return dir_fd;
	if (u->is_layer && !u->member->plain && layer_is_whiteout(name))
		return layer_apply_whiteout(dir_fd, name, &u->since, u->outcome);
	int r = u->is_layer ? layer_make_room(dir_fd, name, u->member->type == '5', u->outcome) : 0;
	if (r < 0)
		return r;
	switch (u->member->type) {
	case '0':
		return unpack_file(u, dir_fd, name);
	case '1':
		return unpack_hard_link(u, dir_fd, name);
	case '2':
		return unpack_symlink(u, dir_fd, name);
	case '5':
		return unpack_directory(u, dir_fd, name, path);
	case '6':
		return unpack_fifo(u, dir_fd, name);
	default:
		return -EPERM;
	}
}

/* Reports members to the front, up to the requested limit. */
static int unpack_tell(struct unpacking *u, const char *path)
{
	struct stat st;
	if (u->outcome->count++ >= u->request->fixed.limit) {
		u->outcome->truncated = true;
		return 0;
	}
	const char *slash = strrchr(path, '/');
	if (u->parent < 0 ||
		fstatat(u->parent, slash ? slash + 1 : path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	autobuf full = {0};
	buf_append(&full, u->absolute.data, u->absolute.len - 1);
	if (full.len > 1)
		buf_append_char(&full, '/');
	buf_append(&full, path, strlen(path) + 1);
	return full.failed ? -ENOMEM
			   : put_entry(full.data, &st, u->parent, slash ? slash + 1 : path, 0);
}

static int place_source(struct unpacking *u, char **path);

int unpack_take(struct unpacking *u)
{
	const struct tar_member *m = u->member;
	char *path = m->path.data;
	/* Labels, volumes and other makers' types are passed by; a sparse file cannot be. */
	if (m->type < '0' || m->type > '6')
		return m->type == 'S' ? serve_fail(u->outcome, -EBADMSG, path)
				      : u->format->take_content(u, -1);
	/* A sandbox has its own devices. */
	if (u->is_layer && (m->type == '3' || m->type == '4'))
		return 0;
	if (strlen(path) >= PATH_MAX)
		return serve_fail(u->outcome, -ENAMETOOLONG, path);
	if (!tar_clean_path(path))
		return serve_fail(u->outcome, -EXDEV, path);
	int wanted = u->source ? place_source(u, &path) : 1;
	if (wanted <= 0)
		return wanted < 0 ? serve_fail(u->outcome, wanted, path)
				  : u->format->take_content(u, -1);
	/* The target itself keeps its mode if it existed before. */
	if (path[0] == '\0')
		return m->type != '5' ? -EBADMSG : u->top_is_new ? unpack_remember(u, path) : 0;
	int r = unpack_member(u, path);
	if (r < 0)
		return r == -ECONNRESET ? r : serve_fail(u->outcome, r, path);
	return unpack_tell(u, path);
}

/*
 * Opens the destination when the first member is there, because its kind decides which one it is.
 */
static int open_top(struct unpacking *u, const char *path)
{
	int e = 0;
	if (u->request->fixed.flags & FILE_PARENTS) {
		e = make_parents(path, (uid_t)-1, (gid_t)-1);
		u->top_is_new = e == 0 && mkdir(path, 0755) == 0;
		if (e == 0 && !u->top_is_new && errno != EEXIST)
			e = -errno;
	}
	if (e == 0 && (u->top = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		e = -errno;
	return e < 0 ? e : path_absolute(path, &u->absolute);
}

static bool unpack_is_directory(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A single file: into the target, if that is or shall be a directory; else it becomes the target.
 */
static int place_file(struct unpacking *u, char **path)
{
	const char *target = u->request->text[FILE_PATH];
	const char *slash = strrchr(target, '/');
	const char *own = strrchr(u->source, '/');
	if (!slash || !slash[1] || unpack_is_directory(target)) {
		*path = own ? (char *)(uintptr_t)own + 1 : u->source;
		return u->top < 0 ? open_top(u, target) : 0;
	}
	autofree char *parent = strndup(target, (size_t)(slash - target + 1));
	*path = (char *)(uintptr_t)slash + 1;
	if (!parent)
		return -ENOMEM;
	return u->top < 0 ? open_top(u, parent) : 0;
}

/* 1: it is wanted, and *path is where it goes below the top; 0: it is not. */
static int place_source(struct unpacking *u, char **path)
{
	size_t len = strlen(u->source);
	int r = 0;
	if (len > 0 && strcmp(*path, u->source) == 0 && u->member->type != '5') {
		r = place_file(u, path);
		return r < 0 ? r : 1;
	}
	if (len > 0 && (strncmp(*path, u->source, len) != 0 ||
			       ((*path)[len] != '/' && (*path)[len] != '\0')))
		return 0;
	if (u->top < 0)
		r = open_top(u, u->request->text[FILE_PATH]);
	*path += len + ((*path)[len] == '/' && len > 0);
	return r < 0 ? r : 1;
}

static int unpack_prepare(struct unpacking *u)
{
	const struct file_request *r = u->request;
	const char *owner = r->text[FILE_OWNER];
	if (owner_parse(owner, strlen(owner), &u->uid, &u->gid) < 0)
		return serve_fail(u->outcome, -EINVAL, owner);
	u->is_layer = r->fixed.flags & FILE_LAYER;
	if (u->is_layer)
		layer_begin(&u->since);
	if (!r->text[FILE_EXTRA][0])
		return open_top(u, r->text[FILE_PATH]);
	u->source = strdup(r->text[FILE_EXTRA]);
	if (!u->source)
		return -ENOMEM;
	return tar_clean_path(u->source) ? 0 : serve_fail(u->outcome, -EXDEV, r->text[FILE_EXTRA]);
}

int file_unpack(const struct file_request *r, struct outcome *o)
{
	struct unpacking u = {.request = r, .outcome = o, .top = -1, .parent = -1};
	u.format = r->fixed.flags & FILE_ZIP ? &unpack_zip : &unpack_tar;
	int e = unpack_prepare(&u);
	if (e == 0)
		e = u.format->read(&u);
	if (e == 0)
		e = unpack_apply_later(&u);
	if (e == 0 && u.source && u.top < 0)
		e = serve_fail(o, -ENOENT, r->text[FILE_EXTRA]);
	if (u.top >= 0)
		close(u.top);
	if (u.parent >= 0)
		close(u.parent);
	buf_finish(&u.parent_path);
	buf_finish(&u.later_paths);
	buf_finish(&u.absolute);
	free(u.later);
	free(u.source);
	return e;
}
