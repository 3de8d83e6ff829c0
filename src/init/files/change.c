/* MKDIR and SYMLINK; CHMOD and CHOWN, of one file or a whole tree. */
#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static int make_directory(const struct file_request *r, uid_t uid, gid_t gid)
{
	const char *path = r->text[FILE_PATH];
	struct stat st;
	int e = r->fixed.flags & FILE_PARENTS ? make_parents(path, uid, gid) : 0;
	if (e < 0)
		return e;
	if (mkdir(path, 0777) < 0) {
		if (errno != EEXIST || !(r->fixed.flags & FILE_EXIST_OK))
			return -errno;
		return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? 0 : -EEXIST;
	}
	if ((uid != (uid_t)-1 || gid != (gid_t)-1) && chown(path, uid, gid) < 0)
		return -errno;
	if ((r->fixed.flags & FILE_HAS_MODE) && chmod(path, r->fixed.mode & 07777) < 0)
		return -errno;
	return 0;
}

int file_mkdir(const struct file_request *r, struct outcome *o)
{
	uid_t uid;
	gid_t gid;
	const char *owner = r->text[FILE_OWNER];
	if (owner_parse(owner, strlen(owner), &uid, &gid) < 0)
		return serve_fail(o, -EINVAL, owner);
	int e = make_directory(r, uid, gid);
	return e < 0 ? e : put_entry_of(r, r->text[FILE_PATH], true);
}

int file_symlink(const struct file_request *r, struct outcome *o)
{
	const char *path = r->text[FILE_PATH];
	(void)o;
	int e = r->fixed.flags & FILE_PARENTS ? make_parents(path, (uid_t)-1, (gid_t)-1) : 0;
	if (e < 0)
		return e;
	if (symlink(r->text[FILE_OTHER], path) == 0)
		return put_entry_of(r, path, false);
	if (errno != EEXIST || !(r->fixed.flags & FILE_OVERWRITE))
		return -errno;
	autofree char *beside = path_beside(path);
	if (!beside || symlink(r->text[FILE_OTHER], beside) < 0)
		return beside ? -errno : -ENOMEM;
	if (rename(beside, path) < 0) {
		e = -errno;
		unlink(beside);
		return e;
	}
	return put_entry_of(r, path, false);
}

/* ---- for one or for all ---- */

struct change {
	bool chown, chmod;
	mode_t mode;
	uid_t uid;
	gid_t gid;
};

/* The owner first: a new one takes set-id bits away. */
static int change_apply(const struct change *c, int dir_fd, const char *name, bool follow)
{
	int flags = follow ? 0 : AT_SYMLINK_NOFOLLOW;
	if (c->chown && fchownat(dir_fd, name, c->uid, c->gid, flags) < 0)
		return -errno;
	if (c->chmod && fchmodat(dir_fd, name, c->mode, flags) < 0)
		return -errno;
	return 0;
}

/* Skips links when changing modes in a tree: they have none, and their targets may be anywhere. */
static int apply_below(const struct change *c, const char *path, struct outcome *o)
{
	struct walk w;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	int r = walk_open(&w, fd, "", SIZE_MAX);
	while (r >= 0 && (r = walk_next(&w)) > 0) {
		if (w.type == DT_LNK && c->chmod)
			continue;
		/* Entered first: afterwards we may not be allowed to. */
		char *name = strdup(w.name);
		int dir_fd = dup(walk_fd(&w));
		r = !name || dir_fd < 0 ? -ENOMEM : w.type == DT_DIR ? walk_enter(&w) : 0;
		if (r >= 0 && name)
			r = change_apply(c, dir_fd, name, false);
		if (r < 0)
			serve_fail(o, r, w.path.data);
		free(name);
		close(dir_fd);
	}
	walk_finish(&w);
	return r;
}

static int change_entry(const struct file_request *r, const struct change *c, struct outcome *o)
{
	struct stat st;
	const char *path = r->text[FILE_PATH];
	bool follow = (r->fixed.flags & FILE_FOLLOW) != 0;
	if (lstat(path, &st) < 0)
		return -errno;
	int e = 0;
	if ((r->fixed.flags & FILE_RECURSIVE) && S_ISDIR(st.st_mode))
		e = apply_below(c, path, o);
	if (e == 0)
		e = change_apply(c, AT_FDCWD, path, follow);
	return e < 0 ? e : put_entry_of(r, path, follow);
}

int file_chmod(const struct file_request *r, struct outcome *o)
{
	struct change c = {.chmod = true, .mode = r->fixed.mode & 07777};
	return change_entry(r, &c, o);
}

int file_chown(const struct file_request *r, struct outcome *o)
{
	struct change c = {.chown = true,
		.chmod = (r->fixed.flags & FILE_HAS_MODE) != 0,
		.mode = r->fixed.mode & 07777};
	const char *owner = r->text[FILE_OWNER];
	if (owner_parse(owner, strlen(owner), &c.uid, &c.gid) < 0)
		return serve_fail(o, -EINVAL, owner);
	return change_entry(r, &c, o);
}
