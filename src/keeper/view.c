#include "keeper/view.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "keeper/keeper.h"

#define OPAQUE   "trusted.overlay.opaque"
#define REDIRECT "trusted.overlay.redirect"

static int open_directory(int dir_fd, const char *name)
{
	return openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Below dir_fd, and nothing followed on the way. */
static int view_open_beneath(int dir_fd, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
}

/* ---- the whole ---- */

static int open_lower(struct keeper *k, const char *root, struct view *v)
{
	char path[ID_SIZE + 16];
	if (!root[0]) {
		v->has_usr = true;
		v->root_lower = open(k->template_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		v->usr_lower = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return v->root_lower < 0 || v->usr_lower < 0 ? -errno : 0;
	}
	snprintf(path, sizeof path, "%s/root/image", root);
	v->root_lower = view_open_beneath(k->dirs[DISK_LAYER], path);
	return v->root_lower < 0 ? -errno : 0;
}

static int open_upper(struct keeper *k, const struct disk_name *disk, struct view *v)
{
	if (disk->kind == DISK_NONE)
		return 0;
	autoclose int fd = disk_open(k, disk);
	if (fd < 0)
		return fd;
	v->root_upper = open_directory(fd, "root");
	v->usr_upper = open_directory(fd, "usr");
	return v->root_upper < 0 || v->usr_upper < 0 ? -errno : 0;
}

int view_open(struct keeper *k, const struct disk_name *disk, const char *root, struct view *ret)
{
	*ret = (struct view){-1, -1, -1, -1, false};
	int r = open_lower(k, root, ret);
	if (r == 0)
		r = open_upper(k, disk, ret);
	if (r < 0)
		view_close(ret);
	return r;
}

static void view_close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

void view_close(struct view *v)
{
	view_close_if_open(v->root_upper);
	view_close_if_open(v->root_lower);
	view_close_if_open(v->usr_upper);
	view_close_if_open(v->usr_lower);
}

struct view_dir view_top(const struct view *v)
{
	return (struct view_dir){v->root_upper, v->root_lower, v->root_lower, true};
}

/* ---- one name ---- */

static bool is_usr(const struct view *v, const struct view_dir *d, const char *name)
{
	return d->is_root && v->has_usr && strcmp(name, "usr") == 0;
}

static bool found_in(int dir_fd, const char *name, struct view_entry *e)
{
	if (dir_fd < 0 || fstatat(dir_fd, name, &e->st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	e->dir_fd = dir_fd;
	return true;
}

void view_look(
	const struct view *v, const struct view_dir *d, const char *name, struct view_entry *ret)
{
	*ret = (struct view_entry){.dir_fd = -1};
	if (is_usr(v, d, name)) {
		int fd = v->usr_upper >= 0 ? v->usr_upper : v->usr_lower;
		ret->exists = fstat(fd, &ret->st) == 0;
		ret->in_upper = v->usr_upper >= 0;
		ret->dir_fd = fd;
		return;
	}
	if (found_in(d->upper, name, ret)) {
		ret->in_upper = true;
		ret->exists = !(S_ISCHR(ret->st.st_mode) && ret->st.st_rdev == 0);
		return;
	}
	ret->exists = found_in(d->lower, name, ret);
}

static bool is_opaque(int fd)
{
	char value[8];
	return fgetxattr(fd, OPAQUE, value, sizeof value) >= 1 && value[0] == 'y';
}

/* The lower directory that shows through: of the same name, or the one it was moved from. */
static int lower_of(const struct view_dir *d, int upper, const char *name)
{
	char redirect[PATH_MAX];
	ssize_t n = fgetxattr(upper, REDIRECT, redirect, sizeof redirect - 1);
	if (n <= 0)
		return d->lower < 0 ? -1 : open_directory(d->lower, name);
	redirect[n] = '\0';
	if (redirect[0] == '/')
		return view_open_beneath(d->top_lower, redirect + 1);
	return d->lower < 0 || strchr(redirect, '/') ? -1 : view_open_beneath(d->lower, redirect);
}

int view_enter(const struct view *v, const struct view_dir *d, const char *name,
	const struct view_entry *e, struct view_dir *ret)
{
	*ret = (struct view_dir){-1, -1, d->top_lower, false};
	if (is_usr(v, d, name)) {
		ret->top_lower = v->usr_lower;
		ret->upper = v->usr_upper < 0 ? -1 : dup(v->usr_upper);
		ret->lower = dup(v->usr_lower);
		return ret->lower < 0 ? -errno : 0;
	}
	if (!e->in_upper) {
		ret->lower = open_directory(d->lower, name);
		return ret->lower < 0 ? -errno : 0;
	}
	ret->upper = open_directory(d->upper, name);
	if (ret->upper < 0)
		return -errno;
	if (is_opaque(ret->upper))
		return 0;
	errno = 0;
	ret->lower = lower_of(d, ret->upper, name);
	/*
	 * An open that failed for lack of resources does not mean that there is no lower directory.
	 */
	return ret->lower < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM) ? -errno
											 : 0;
}

void view_dir_close(struct view_dir *d)
{
	view_close_if_open(d->upper);
	view_close_if_open(d->lower);
}
