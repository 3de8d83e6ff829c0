/*
 * WATCH: what happens in a directory, and with FILE_RECURSIVE everywhere below, as inotify tells
 * it.
 *
 * A new directory is watched as soon as its event is read, and then looked through: what was made
 * in it before is told as created. What was made after, but before we looked, would be told twice;
 * its event is dropped, once. Paths are made from the tree of watched directories, so a renamed
 * directory costs one node. What the kernel had to drop, and what could not be watched, is told as
 * an overflow: look again.
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

#define NODES_MAX    65536u
#define TOLD_MAX     65536u
#define PAIR_MS      10 /* how long the second half of a rename may take */
#define NODE_BUCKETS 4096u

#define WATCHED                                                                                    \
	(IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB |             \
		IN_DELETE_SELF | IN_MOVE_SELF | IN_EXCL_UNLINK | IN_ONLYDIR)

/* A directory that is watched. */
struct node {
	int wd;
	struct node *parent, *children, *prev, *next; /* siblings in a list */
	struct node *bucket_next;
	char name[];
};

/* A name already reported by a scan, whose inotify event may still come. */
struct told {
	struct told *next;
	int wd;
	char name[];
};

struct watching {
	int fd;
	bool recursive;
	struct node *top;
	struct node *buckets[NODE_BUCKETS];
	size_t count;
	struct told *told;
	size_t told_count;
	struct buf prefix; /* the watched directory's path */
	/* The first half of a rename. */
	struct {
		uint32_t cookie; /* 0: none */
		bool directory;
		struct buf path;
		struct node *parent;
		char name[NAME_MAX + 1];
	} moved;
};

/* ---- nodes ---- */

static struct node *node_find(const struct watching *w, int wd)
{
	struct node *n = w->buckets[(unsigned)wd % NODE_BUCKETS];
	while (n && n->wd != wd)
		n = n->bucket_next;
	return n;
}

static struct node *files_watch_node_child(const struct node *parent, const char *name)
{
	struct node *n = parent->children;
	while (n && strcmp(n->name, name) != 0)
		n = n->next;
	return n;
}

static void node_attach(struct node *n, struct node *parent)
{
	n->parent = parent;
	n->prev = NULL;
	n->next = parent->children;
	if (n->next)
		n->next->prev = n;
	parent->children = n;
}

static void node_detach(struct node *n)
{
	if (!n->parent)
		return;
	if (n->prev)
		n->prev->next = n->next;
	else
		n->parent->children = n->next;
	if (n->next)
		n->next->prev = n->prev;
}

static void node_leave_bucket(struct watching *w, struct node *n)
{
	struct node **at = &w->buckets[(unsigned)n->wd % NODE_BUCKETS];
	while (*at != n)
		at = &(*at)->bucket_next;
	*at = n->bucket_next;
}

static struct node *node_new(struct watching *w, int wd, struct node *parent, const char *name)
{
	struct node *n = calloc(1, sizeof *n + strlen(name) + 1);
	if (!n)
		return NULL;
	n->wd = wd;
	memcpy(n->name, name, strlen(name) + 1);
	struct node **bucket = &w->buckets[(unsigned)wd % NODE_BUCKETS];
	n->bucket_next = *bucket;
	*bucket = n;
	if (parent)
		node_attach(n, parent);
	w->count++;
	return n;
}

/* The directory and all below are no longer ours to watch. The deepest goes first. */
static void node_forget(struct watching *w, struct node *top)
{
	for (struct node *n = top;;) {
		while (n->children)
			n = n->children;
		struct node *parent = n->parent;
		bool last = n == top;
		node_detach(n);
		node_leave_bucket(w, n);
		inotify_rm_watch(w->fd, n->wd);
		free(n);
		w->count--;
		if (last)
			return;
		n = parent;
	}
}

/* Below another directory, or by another name; it moves in memory. */
static struct node *node_rename(
	struct watching *w, struct node *n, struct node *parent, const char *name)
{
	struct node *copy = malloc(sizeof *copy + strlen(name) + 1);
	if (!copy)
		return NULL;
	node_detach(n);
	node_leave_bucket(w, n);
	*copy = *n;
	memcpy(copy->name, name, strlen(name) + 1);
	for (struct node *c = copy->children; c; c = c->next)
		c->parent = copy;
	free(n);
	struct node **bucket = &w->buckets[(unsigned)copy->wd % NODE_BUCKETS];
	copy->bucket_next = *bucket;
	*bucket = copy;
	node_attach(copy, parent);
	return copy;
}

/* Relative to the watched directory; from the end to the beginning, because that is how nodes are
 * linked. */
static int node_path(const struct node *n, const char *name, struct buf *out)
{
	size_t len = strlen(name);
	for (const struct node *at = n; at->parent; at = at->parent)
		len += strlen(at->name) + 1;
	out->len = 0;
	if (!buf_reserve(out, len + 1))
		return -ENOMEM;
	char *end = out->data + len;
	*end = '\0';
	end -= strlen(name);
	memcpy(end, name, strlen(name));
	for (const struct node *at = n; at->parent; at = at->parent) {
		*--end = '/';
		end -= strlen(at->name);
		memcpy(end, at->name, strlen(at->name));
	}
	out->len = len + 1;
	return len < WALK_PATH_MAX ? 0 : -ENAMETOOLONG;
}

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

static int tell_at(enum file_event kind, bool directory, const struct node *dir, const char *name)
{
	autobuf path = {0};
	int r = node_path(dir, name, &path);
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
	int wd = inotify_add_watch(w->fd, path, WATCHED);
	return wd < 0 ? -errno : wd;
}

/*
 * Returns the node of a directory, made if missing; NULL if it cannot be watched, *error says why.
 */
static struct node *watch_directory(
	struct watching *w, int dir_fd, struct node *parent, const char *name, int *error)
{
	*error = w->count >= NODES_MAX ? -EMFILE : 0;
	int wd = *error ? -1 : add_watch(w, dir_fd);
	if (wd < 0) {
		*error = *error ? *error : wd;
		return NULL;
	}
	/* A known directory under another name was moved without an event. */
	struct node *n = node_find(w, wd);
	if (n && parent && n != w->top && (n->parent != parent || strcmp(n->name, name) != 0))
		n = node_rename(w, n, parent, name);
	else if (!n)
		n = node_new(w, wd, parent, name);
	if (!n)
		*error = -ENOMEM;
	return n;
}

/* Everything below a directory that is watched: its directories are, too. With `news`, all of it is
 * told. */
static int watch_below(struct watching *w, struct node *top, int fd, bool news)
{
	struct walk walk;
	struct node *dir = top; /* of the entry */
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
		struct node *n = watch_directory(w, walk_fd(&walk), dir, name, &r);
		if (!n)
			break;
		dir = n;
		depth++;
	}
	walk_finish(&walk);
	return r > 0 ? 0 : r;
}

/* Watches a new directory. Reports an overflow if it cannot be watched. */
static int watch_new(struct watching *w, struct node *parent, const char *name)
{
	autobuf path = {0}, full = {0};
	int r = node_path(parent, name, &path);
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
	struct node *n = watch_directory(w, fd, parent, name, &r);
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
	struct node *n =
		w->moved.directory ? files_watch_node_child(w->moved.parent, w->moved.name) : NULL;
	if (n)
		node_forget(w, n);
	return files_watch_tell(FILE_EVENT_REMOVE, w->moved.directory, w->moved.path.data, "");
}

static int moved_from(struct watching *w, struct node *dir, const struct inotify_event *e)
{
	int r = node_path(dir, e->name, &w->moved.path);
	if (r < 0)
		return r == -ENAMETOOLONG ? files_watch_tell(FILE_EVENT_OVERFLOW, false, "", "")
					  : r;
	w->moved.cookie = e->cookie;
	w->moved.directory = e->mask & IN_ISDIR;
	w->moved.parent = dir;
	snprintf(w->moved.name, sizeof w->moved.name, "%s", e->name);
	return 0;
}

static int moved_to(struct watching *w, struct node *dir, const struct inotify_event *e)
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
	int r = node_path(dir, e->name, &path);
	if (r < 0)
		return r == -ENAMETOOLONG ? files_watch_tell(FILE_EVENT_OVERFLOW, false, "", "")
					  : r;
	struct node *replaced = directory ? files_watch_node_child(dir, e->name) : NULL;
	struct node *n = directory ? files_watch_node_child(w->moved.parent, w->moved.name) : NULL;
	if (replaced && replaced != n)
		node_forget(w, replaced);
	if (n && !node_rename(w, n, dir, e->name))
		r = -ENOMEM;
	if (r == 0)
		r = files_watch_tell(FILE_EVENT_RENAME, directory, w->moved.path.data, path.data);
	/* It was renamed before we could watch it. */
	return r == 0 && directory && w->recursive && !n ? watch_new(w, dir, e->name) : r;
}

static int files_watch_created(struct watching *w, struct node *dir, const struct inotify_event *e)
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
	struct node *dir = node_find(w, e->wd);
	if (!dir)
		return 0;
	if (e->mask & (IN_DELETE_SELF | IN_IGNORED | IN_UNMOUNT | IN_MOVE_SELF)) {
		if (dir != w->top) {
			if (e->mask & IN_IGNORED)
				node_forget(w, dir);
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
	if (name[0] == '\0' && dir != w->top)
		return 0;
	if (e->mask & IN_DELETE)
		return tell_at(FILE_EVENT_REMOVE, directory, dir, name);
	return tell_at(
		e->mask & IN_ATTRIB ? FILE_EVENT_CHMOD : FILE_EVENT_WRITE, directory, dir, name);
}

/* All that is there; 1: the end. */
static int files_watch_handle_events(struct watching *w)
{
	_Alignas(struct inotify_event) char events[32 * 1024];
	for (;;) {
		ssize_t n = read(w->fd, events, sizeof events);
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

/* The front sends nothing more; a readable socket means that it has closed. */
static int watch_loop(struct watching *w)
{
	int r = io_flush();
	while (r == 0) {
		struct pollfd p[] = {
			{.fd = w->fd, .events = POLLIN}, {.fd = io_fd(), .events = POLLIN}};
		int n = poll(p, 2, w->moved.cookie ? PAIR_MS : -1);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && p[1].revents)
			return -ECONNRESET;
		if (n == 0)
			r = moved_away(w);
		else if (n > 0)
			r = files_watch_handle_events(w);
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
	w->top = watch_directory(w, fd, NULL, "", &error);
	if (w->top && w->recursive)
		error = watch_below(w, w->top, fd, false);
	else
		close(fd);
	if (error == 0)
		error = path_absolute(path, &w->prefix);
	/* "No space" would be about the disk. */
	return error == -ENOSPC ? -EMFILE : error;
}

static void watching_finish(struct watching *w)
{
	if (w->fd >= 0)
		close(w->fd); /* and with it all watches */
	for (size_t i = 0; i < NODE_BUCKETS; i++) {
		while (w->buckets[i]) {
			struct node *next = w->buckets[i]->bucket_next;
			free(w->buckets[i]);
			w->buckets[i] = next;
		}
	}
	told_clear(w);
	buf_finish(&w->prefix);
	buf_finish(&w->moved.path);
}

int file_watch(const struct file_request *r, struct outcome *o)
{
	static struct watching w;
	(void)o;
	w = (struct watching){.recursive = (r->fixed.flags & FILE_RECURSIVE) != 0};
	w.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	int e = w.fd < 0 ? -errno : files_watch_begin(&w, r->text[FILE_PATH]);
	if (e == 0)
		e = io_put(RECORD_READY, NULL, 0, NULL, 0);
	if (e == 0)
		e = watch_loop(&w);
	watching_finish(&w);
	return e;
}
