/* STAT, LIST and FIND: what is there, in the order of names. */
#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

int file_stat(const struct file_request *r, struct outcome *o)
{
	(void)o;
	return put_entry_of(r, r->text[FILE_PATH], (r->fixed.flags & FILE_FOLLOW) != 0);
}

struct listing {
	const struct file_request *request;
	struct outcome *outcome;
	const struct glob *glob; /* NULL: everything */
	struct walk walk;
	struct buf path; /* the directory's absolute path, then an entry's */
	size_t prefix;   /* of the former, with its slash */
};

static int files_list_put_found(struct listing *l)
{
	struct stat st;
	struct walk *w = &l->walk;
	if (fstatat(walk_fd(w), w->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (l->outcome->count == l->request->fixed.limit) {
		l->outcome->truncated = true;
		return 1;
	}
	l->outcome->count++;
	l->path.len = l->prefix;
	buf_append(&l->path, w->path.data, w->path.len + 1);
	if (l->path.failed)
		return -ENOMEM;
	return put_entry(l->path.data, &st, walk_fd(w), w->name, l->request->fixed.flags);
}

static bool files_list_is_wanted(const struct listing *l)
{
	unsigned type = l->request->fixed.mode & S_IFMT;
	if (type && (unsigned)DTTOIF(l->walk.type) != type)
		return false;
	return !l->glob || glob_match(l->glob, l->walk.path.data);
}

static bool is_worth_entering(const struct listing *l)
{
	const struct walk *w = &l->walk;
	uint32_t depth = l->request->fixed.depth;
	return w->type == DT_DIR && (depth == 0 || walk_depth(w) + 1 < depth) &&
	       (!l->glob || glob_may_match_below(l->glob, w->path.data));
}

/* Unreadable and too deep directories are left out: the rest of the list is still useful. */
static int files_list_enter(struct listing *l)
{
	int r = walk_enter(&l->walk);
	return r == -EACCES || r == -ENAMETOOLONG ? 0 : r;
}

static int list_all(struct listing *l)
{
	int r;
	while ((r = walk_next(&l->walk)) > 0) {
		r = files_list_is_wanted(l) ? files_list_put_found(l) : 0;
		if (r != 0)
			return r < 0 ? r : 0;
		if (is_worth_entering(l) && (r = files_list_enter(l)) < 0)
			return r;
	}
	return r;
}

static int files_list_list(const struct file_request *r, const struct glob *glob, struct outcome *o)
{
	struct listing l = {.request = r, .outcome = o, .glob = glob};
	int fd = open(r->text[FILE_PATH], O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	size_t max_depth = r->fixed.depth ? r->fixed.depth - 1 : SIZE_MAX;
	const char *after = r->text[FILE_EXTRA];
	int e = path_absolute(r->text[FILE_PATH], &l.path);
	if (e < 0) {
		close(fd);
		return e;
	}
	l.prefix = l.path.len - 1;
	if (l.path.data[l.prefix - 1] != '/')
		l.path.data[l.prefix++] = '/';
	/* `after` may be absolute, as listed before, or relative to the directory. */
	if (strncmp(after, l.path.data, l.prefix) == 0)
		after += l.prefix;
	e = walk_open(&l.walk, fd, after, max_depth);
	if (e == 0)
		e = list_all(&l);
	walk_finish(&l.walk);
	buf_finish(&l.path);
	return e;
}

int file_list(const struct file_request *r, struct outcome *o)
{
	return files_list_list(r, NULL, o);
}

int file_find(const struct file_request *r, struct outcome *o)
{
	struct glob *glob;
	int e = glob_compile(
		r->text[FILE_PATTERN], (r->fixed.flags & FILE_IGNORE_CASE) != 0, &glob);
	if (e < 0)
		return serve_fail(o, e, r->text[FILE_PATTERN]);
	e = files_list_list(r, glob, o);
	glob_free(glob);
	return e;
}
