/*
 * WATCH: what happens in a directory, and with FILE_RECURSIVE everywhere below, as inotify tells
 * it.
 *
 * A new directory is watched as soon as its event is read, and then looked through: what was made
 * in it before is told as created. What was made after, but before we looked, would be told twice;
 * its event is dropped, once. Paths are made from the tree of watched directories (watch_tree.c),
 * so a renamed directory costs one node. What the kernel had to drop, and what could not be
 * watched, is told as an overflow: look again.
 */
#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "init/files/watch_tree.h"

#define NODES_MAX 65536u
#define TOLD_MAX  65536u
#define PAIR_MS   10 /* how long the second half of a rename may take */

#define WATCHED                                                                                    \
	(IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB |             \
		IN_DELETE_SELF | IN_MOVE_SELF | IN_EXCL_UNLINK | IN_ONLYDIR)

/* A name already reported by a scan, whose inotify event may still come. */
struct told {
	struct told *next;
	int wd;
	char name[];
};

struct watching {
	struct watch_tree tree;
	bool recursive;
	struct told *told;
	size_t told_count;
	struct buf prefix; /* the watched directory's path */
	bool sync_asked;
	/* The first half of a rename, until the second half comes. */
	struct {
		uint32_t cookie; /* 0: none */
		bool directory;
		struct buf path;
		struct watch_node *parent;
		char name[NAME_MAX + 1];
	} moved;
};

/* ---- telling ---- */

static int files_watch_tell(
	enum file_event kind, bool directory, const char *path, const char *destination)
{
	struct record_text texts[] = {{path, strlen(path)}, {destination, strlen(destination)}};
	struct record_event e = {
		.kind = kind,
		.directory = directory,
		.path_len = (uint32_t)texts[0].len,
		.destination_len = (uint32_t)texts[1].len,
	};
	return io_put(RECORD_EVENT, &e, sizeof e, texts, 2);
}

static int tell_at(
	enum file_event kind, bool directory, const struct watch_node *dir, const char *name)
{
	autobuf path = {0};
	int r = watch_tree_path(dir, name, &path);
	if (r == -ENAMETOOLONG)
		return files_watch_tell(FILE_EVENT_OVERFLOW, false, "", "");
	return r < 0 ? r : files_watch_tell(kind, directory, path.data, "");
}

static void told_add(struct watching *w, int wd, const char *name)
{
	struct told *t = w->told_count < TOLD_MAX ? malloc(sizeof *t + strlen(name) + 1) : NULL;
	if (!t)
		return; /* then it is told twice */
	t->wd = wd;
	memcpy(t->name, name, strlen(name) + 1);
	t->next = w->told;
	w->told = t;
	w->told_count++;
}

static bool told_take(struct watching *w, int wd, const char *name)
{
	for (struct told **at = &w->told; *at; at = &(*at)->next) {
		struct told *t = *at;
		if (t->wd != wd || strcmp(t->name, name) != 0)
			continue;
		*at = t->next;
		free(t);
		w->told_count--;
		return true;
	}
	return false;
}

static void told_clear(struct watching *w)
{
	while (w->told) {
		struct told *next = w->told->next;
		free(w->told);
		w->told = next;
	}
	w->told_count = 0;
}

/* ---- watching directories ---- */

/* By the descriptor: a path could lead elsewhere by now. */
static int add_watch(struct watching *w, int dir_fd)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", dir_fd);
	int wd = inotify_add_watch(w->tree.fd, path, WATCHED);
	return wd < 0 ? -errno : wd;
}

/*
 * Returns the node of a directory, made if missing; NULL if it cannot be watched, *error says why.
 */
static struct watch_node *watch_directory(
	struct watching *w, int dir_fd, struct watch_node *parent, const char *name, int *error)
{
	*error = w->tree.count >= NODES_MAX ? -EMFILE : 0;
	int wd = *error ? -1 : add_watch(w, dir_fd);
	if (wd < 0) {
		*error = *error ? *error : wd;
		return NULL;
	}
	/* A known directory under another name was moved without an event. */
	struct watch_node *n = watch_tree_find(&w->tree, wd);
	if (n && parent && n != w->tree.top && (n->parent != parent || strcmp(n->name, name) != 0))
		n = watch_tree_move(&w->tree, n, parent, name);
	else if (!n)
		n = watch_tree_add(&w->tree, wd, parent, name);
	if (!n)
		*error = -ENOMEM;
	return n;
}

/* Everything below a directory that is watched: its directories are, too. With `news`, all of it is
 * told. */
static int watch_below(struct watching *w, struct watch_node *top, int fd, bool news)
{
	struct walk walk;
	struct watch_node *dir = top; /* of the entry */
	size_t depth = 0;
	int r = walk_open(&walk, fd, "", SIZE_MAX);
	while (r >= 0 && (r = walk_next(&walk)) > 0) {
		for (; depth > walk_depth(&walk); depth--)
			dir = dir->parent;
		if (news) {
			told_add(w, dir->wd, walk.name);
			r = tell_at(FILE_EVENT_CREATE, walk.type == DT_DIR, dir, walk.name);
			if (r < 0)
				break;
		}
		if (walk.type != DT_DIR)
			continue;
		char name[NAME_MAX + 1];
		snprintf(name, sizeof name, "%s", walk.name);
		r = walk_enter(&walk);
		if (r == -EACCES || r == -ENAMETOOLONG)
			r = 0; /* not ours to see */
		if (r <= 0)
			continue;
		struct watch_node *n = watch_directory(w, walk_fd(&walk), dir, name, &r);
		if (!n)
			break;
		dir = n;
		depth++;
	}
	walk_finish(&walk);
	return r > 0 ? 0 : r;
}

/* Watches a new directory. Reports an overflow if it cannot be watched. */
static int watch_new(struct watching *w, struct watch_node *parent, const char *name)
{
	autobuf path = {0}, full = {0};
	int r = watch_tree_path(parent, name, &path);
	if (r < 0)
		return r == -ENAMETOOLONG ? files_watch_tell(FILE_EVENT_OVERFLOW, false, "", "")
					  : r;
	buf_append(&full, w->prefix.data, w->prefix.len - 1);
	buf_append_char(&full, '/');
	buf_append(&full, path.data, path.len);
	if (full.failed)
		return -ENOMEM;
	int fd = open(full.data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0; /* removed again, or not permitted */
	struct watch_node *n = watch_directory(w, fd, parent, name, &r);
	if (!n)
		close(fd);
	else
		r = watch_below(w, n, fd, true);
	bool unwatchable = r == -ENOSPC || r == -EMFILE || r == -ESTALE || r == -ENOENT;
	return unwatchable ? files_watch_tell(FILE_EVENT_OVERFLOW, false, "", "") : r;
}

/* ---- events ---- */

/* The renamed entry did not reappear in the tree: reports its removal. */
static int moved_away(struct watching *w)
{
	if (w->moved.cookie == 0)
		return 0;
	w->moved.cookie = 0;
	struct watch_node *n =
		w->moved.directory ? watch_tree_child(w->moved.parent, w->moved.name) : NULL;
	if (n)
		watch_tree_remove(&w->tree, n);
	return files_watch_tell(FILE_EVENT_REMOVE, w->moved.directory, w->moved.path.data, "");
}

static int moved_from(struct watching *w, struct watch_node *dir, const struct inotify_event *e)
{
	int r = watch_tree_path(dir, e->name, &w->moved.path);
	if (r < 0)
		return r == -ENAMETOOLONG ? files_watch_tell(FILE_EVENT_OVERFLOW, false, "", "")
					  : r;
	w->moved.cookie = e->cookie;
	w->moved.directory = e->mask & IN_ISDIR;
	w->moved.parent = dir;
	snprintf(w->moved.name, sizeof w->moved.name, "%s", e->name);
	return 0;
}

static int moved_to(struct watching *w, struct watch_node *dir, const struct inotify_event *e)
{
	autobuf path = {0};
	bool directory = e->mask & IN_ISDIR;
	if (w->moved.cookie == 0 || w->moved.cookie != e->cookie) {
		if (told_take(w, dir->wd, e->name))
			return 0;
		int r = tell_at(FILE_EVENT_CREATE, directory, dir, e->name);
		return r == 0 && directory && w->recursive ? watch_new(w, dir, e->name) : r;
	}
	w->moved.cookie = 0;
	int r = watch_tree_path(dir, e->name, &path);
	if (r < 0)
		return r == -ENAMETOOLONG ? files_watch_tell(FILE_EVENT_OVERFLOW, false, "", "")
					  : r;
	struct watch_node *replaced = directory ? watch_tree_child(dir, e->name) : NULL;
	struct watch_node *n = directory ? watch_tree_child(w->moved.parent, w->moved.name) : NULL;
	if (replaced && replaced != n)
		watch_tree_remove(&w->tree, replaced);
	if (n && !watch_tree_move(&w->tree, n, dir, e->name))
		r = -ENOMEM;
	if (r == 0)
		r = files_watch_tell(FILE_EVENT_RENAME, directory, w->moved.path.data, path.data);
	/* The directory was renamed before it could be watched. */
	return r == 0 && directory && w->recursive && !n ? watch_new(w, dir, e->name) : r;
}

static int files_watch_created(
	struct watching *w, struct watch_node *dir, const struct inotify_event *e)
{
	bool directory = e->mask & IN_ISDIR;
	if (told_take(w, dir->wd, e->name))
		return 0;
	int r = tell_at(FILE_EVENT_CREATE, directory, dir, e->name);
	return r == 0 && directory && w->recursive ? watch_new(w, dir, e->name) : r;
}

/* Returns 1 if the watched directory is gone. */
static int handle_event(struct watching *w, const struct inotify_event *e)
{
	int r = 0;
	/* A rename's halves are next to each other, or do not belong together. */
	if (w->moved.cookie && !((e->mask & IN_MOVED_TO) && e->cookie == w->moved.cookie))
		r = moved_away(w);
	if (r < 0)
		return r;
	if (e->mask & IN_Q_OVERFLOW)
		return files_watch_tell(FILE_EVENT_OVERFLOW, false, "", "");
	struct watch_node *dir = watch_tree_find(&w->tree, e->wd);
	if (!dir)
		return 0;
	if (e->mask & (IN_DELETE_SELF | IN_IGNORED | IN_UNMOUNT | IN_MOVE_SELF)) {
		if (dir != w->tree.top) {
			if (e->mask & IN_IGNORED)
				watch_tree_remove(&w->tree, dir);
			return 0;
		}
		r = files_watch_tell(FILE_EVENT_REMOVE, true, "", "");
		return r < 0 ? r : 1;
	}
	bool directory = e->mask & IN_ISDIR;
	const char *name = e->len ? e->name : "";
	if (e->mask & IN_MOVED_FROM)
		return moved_from(w, dir, e);
	if (e->mask & IN_MOVED_TO)
		return moved_to(w, dir, e);
	if (e->mask & IN_CREATE)
		return files_watch_created(w, dir, e);
	/* A directory below tells of its own attributes, and so does the one above it. */
	if (name[0] == '\0' && dir != w->tree.top)
		return 0;
	if (e->mask & IN_DELETE)
		return tell_at(FILE_EVENT_REMOVE, directory, dir, name);
	return tell_at(
		e->mask & IN_ATTRIB ? FILE_EVENT_CHMOD : FILE_EVENT_WRITE, directory, dir, name);
}

/* Handles all pending events. Returns 1 at the end. */
static int files_watch_handle_events(struct watching *w)
{
	_Alignas(struct inotify_event) char events[32 * 1024];
	for (;;) {
		ssize_t n = read(w->tree.fd, events, sizeof events);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0)
			return -errno;
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const void *)(events + at);
			int r = handle_event(w, e);
			if (r != 0)
				return r;
			at += (ssize_t)(sizeof *e + e->len);
		}
	}
	/* The queue was empty, so all events for scanned names have arrived. */
	told_clear(w);
	return 0;
}

/* The front sends nothing but SYNC; anything else, and its end, ends the watch. */
static int watch_take_input(struct watching *w)
{
	struct record_header h;
	if (io_next(&h) < 0 || h.type != RECORD_SYNC || h.size != 0)
		return -ECONNRESET;
	w->sync_asked = true;
	return 0;
}

/* Answers SYNC once the queue was read behind it and no rename waits for its second half. */
static int watch_answer_sync(struct watching *w)
{
	if (!w->sync_asked || w->moved.cookie)
		return 0;
	w->sync_asked = false;
	return io_put(RECORD_SYNCED, NULL, 0, NULL, 0);
}

static int watch_loop(struct watching *w)
{
	int r = io_flush();
	while (r == 0) {
		struct pollfd p[] = {
			{.fd = w->tree.fd, .events = POLLIN}, {.fd = io_fd(), .events = POLLIN}};
		int n = poll(p, 2, w->moved.cookie ? PAIR_MS : -1);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && p[1].revents)
			r = watch_take_input(w);
		if (n == 0)
			r = moved_away(w);
		else if (n > 0 && r == 0)
			r = files_watch_handle_events(w);
		if (r == 0)
			r = watch_answer_sync(w);
		if (r >= 0) {
			int sent = io_flush();
			r = sent < 0 ? sent : r;
		}
	}
	return r < 0 ? r : 0;
}

static int files_watch_begin(struct watching *w, const char *path)
{
	int error = 0;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	w->tree.top = watch_directory(w, fd, NULL, "", &error);
	if (w->tree.top && w->recursive)
		error = watch_below(w, w->tree.top, fd, false);
	else
		close(fd);
	if (error == 0)
		error = path_absolute(path, &w->prefix);
	/* "No space" would be about the disk. */
	return error == -ENOSPC ? -EMFILE : error;
}

static void watching_finish(struct watching *w)
{
	watch_tree_finish(&w->tree);
	told_clear(w);
	buf_finish(&w->prefix);
	buf_finish(&w->moved.path);
}

int file_watch(const struct file_request *r, struct outcome *o)
{
	static struct watching w;
	(void)o;
	w = (struct watching){.recursive = (r->fixed.flags & FILE_RECURSIVE) != 0};
	w.tree.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	int e = w.tree.fd < 0 ? -errno : files_watch_begin(&w, r->text[FILE_PATH]);
	if (e == 0)
		e = io_put(RECORD_READY, NULL, 0, NULL, 0);
	if (e == 0)
		e = watch_loop(&w);
	watching_finish(&w);
	return e;
}
