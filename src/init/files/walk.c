/*
 * A directory's names are read in batches of bounded size: the next ones in the order of names
 * behind the last one given. What all levels hold together is bounded, too: the outermost give up
 * theirs and read them again on the way back. So a walk can also begin anywhere, and a change under
 * its feet loses or doubles nothing else.
 */
#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

#define BATCH_SIZE  (1u << 20)
#define BUDGET_SIZE (8u << 20)

struct walk_level {
	struct buf names;   /* each a byte of type, the name, NUL */
	const char **order; /* into names, sorted; each at its type */
	size_t count, capacity, next;
	bool more;       /* there are names behind the last of order */
	char *last;      /* the last one given; NULL: none */
	size_t path_len; /* of the directory itself */
};

struct linux_dirent {
	uint64_t ino;
	int64_t offset;
	unsigned short size;
	unsigned char type;
	char name[];
};

/* ---- one level ---- */

static void level_drop_names(struct walk *w, struct walk_level *l)
{
	w->names_size -= l->names.len;
	buf_finish(&l->names);
	free(take_ptr(l->order));
	l->count = l->capacity = l->next = 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a + 1, *(const char *const *)b + 1);
}

/* The order is made of offsets while names may still move, and of pointers afterwards. */
static int level_add(struct walk_level *l, unsigned char type, const char *name)
{
	if (l->count == l->capacity) {
		size_t capacity = l->capacity ? l->capacity * 2 : 32;
		const char **order = realloc(l->order, capacity * sizeof *order);
		if (!order)
			return -ENOMEM;
		l->order = order;
		l->capacity = capacity;
	}
	l->order[l->count++] = (const char *)l->names.len;
	buf_append(&l->names, &type, 1);
	buf_append(&l->names, name, strlen(name) + 1);
	return l->names.failed ? -ENOMEM : 0;
}

static void level_sort(struct walk_level *l)
{
	for (size_t i = 0; i < l->count; i++)
		l->order[i] = l->names.data + (size_t)l->order[i];
	if (l->count > 1)
		qsort(l->order, l->count, sizeof *l->order, compare_names);
}

/* Too many: keep the first half, and remember that there are others. */
static int level_halve(struct walk_level *l, char ceiling[NAME_MAX + 1])
{
	struct buf kept = {0};
	level_sort(l);
	size_t half = l->count / 2;
	snprintf(ceiling, NAME_MAX + 1, "%s", l->order[half] + 1);
	for (size_t i = 0; i < half; i++) {
		size_t at = kept.len;
		buf_append(&kept, l->order[i], strlen(l->order[i] + 1) + 2);
		l->order[i] = (const char *)at;
	}
	buf_finish(&l->names);
	l->names = kept;
	l->count = half;
	l->more = true;
	return kept.failed ? -ENOMEM : 0;
}

static unsigned char find_type(int dir_fd, const struct linux_dirent *e)
{
	struct stat st;
	if (e->type != DT_UNKNOWN)
		return e->type;
	return fstatat(dir_fd, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0
		       ? DT_REG
		       : (unsigned char)IFTODT(st.st_mode);
}

static int level_take(
	struct walk_level *l, int dir_fd, const struct linux_dirent *e, char ceiling[NAME_MAX + 1])
{
	const char *name = e->name;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		(l->last && strcmp(name, l->last) <= 0))
		return 0;
	if (ceiling[0] && strcmp(name, ceiling) >= 0)
		return 0;
	int r = level_add(l, find_type(dir_fd, e), name);
	return r == 0 && l->names.len > BATCH_SIZE ? level_halve(l, ceiling) : r;
}

/* The next batch behind `last`. */
static int level_load(struct walk *w, struct walk_level *l, int dir_fd)
{
	_Alignas(8) char entries[32 * 1024];
	char ceiling[NAME_MAX + 1] = "";
	level_drop_names(w, l);
	l->more = false;
	if (lseek(dir_fd, 0, SEEK_SET) < 0)
		return -errno;
	for (;;) {
		long n = syscall(SYS_getdents64, dir_fd, entries, sizeof entries);
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		for (long at = 0; at < n;) {
			const struct linux_dirent *e = (const void *)(entries + at);
			int r = level_take(l, dir_fd, e, ceiling);
			if (r < 0)
				return r;
			at += e->size;
		}
	}
	level_sort(l);
	w->names_size += l->names.len;
	return 0;
}

static int level_remember(struct walk_level *l, const char *name)
{
	free(l->last);
	l->last = strdup(name);
	return l->last ? 0 : -ENOMEM;
}

/* ---- all levels ---- */

static int push_level(struct walk *w)
{
	if (w->depth == w->capacity) {
		size_t capacity = w->capacity ? w->capacity * 2 : 16;
		struct walk_level *levels = realloc(w->levels, capacity * sizeof *levels);
		if (!levels)
			return -ENOMEM;
		w->levels = levels;
		w->capacity = capacity;
	}
	w->levels[w->depth++] = (struct walk_level){.more = true, .path_len = w->path.len};
	return 0;
}

static void pop_level(struct walk *w)
{
	struct walk_level *l = &w->levels[--w->depth];
	level_drop_names(w, l);
	free(l->last);
}

/* The outermost names can be read again. */
static int keep_budget(struct walk *w)
{
	for (size_t i = 0; i + 1 < w->depth && w->names_size > BUDGET_SIZE; i++) {
		struct walk_level *l = &w->levels[i];
		if (l->count == 0)
			continue;
		int r = l->next > 0 ? level_remember(l, l->order[l->next - 1] + 1) : 0;
		if (r < 0)
			return r;
		level_drop_names(w, l);
		l->more = true;
	}
	return 0;
}

static void set_path(struct walk *w, size_t dir_len, const char *name)
{
	w->path.len = dir_len;
	if (dir_len > 0)
		buf_append_char(&w->path, '/');
	buf_append(&w->path, name, strlen(name) + 1);
	w->path.len--;
	w->name = w->path.data + w->path.len - strlen(name);
}

/* Descends to the position of an earlier walk; continues from the nearest entry if it is gone. */
static int walk_resume(struct walk *w, const char *after, size_t max_depth)
{
	while (*after) {
		char name[NAME_MAX + 1];
		size_t len = strcspn(after, "/");
		if (len == 0 || len > NAME_MAX)
			return len == 0 ? -EINVAL : -ENAMETOOLONG;
		memcpy(name, after, len);
		name[len] = '\0';
		after += len + (after[len] == '/');
		int r = level_remember(&w->levels[w->depth - 1], name);
		if (r < 0)
			return r;
		if (w->depth > max_depth || dirs_enter(&w->dirs, name) < 0)
			return 0;
		set_path(w, w->path.len, name);
		r = push_level(w);
		if (r < 0)
			return r;
	}
	return 0;
}

int walk_open(struct walk *w, int fd, const char *after, size_t max_depth)
{
	*w = (struct walk){0};
	int r = dirs_open(&w->dirs, fd);
	if (r == 0)
		r = push_level(w);
	return r == 0 ? walk_resume(w, after, max_depth) : r;
}

void walk_finish(struct walk *w)
{
	while (w->depth > 0)
		pop_level(w);
	free(w->levels);
	buf_finish(&w->path);
	dirs_finish(&w->dirs);
	*w = (struct walk){0};
}

/* Loads the names after the last one this level has returned. */
static int load_more(struct walk *w, struct walk_level *l)
{
	if (l->next > 0) {
		int r = level_remember(l, l->order[l->next - 1] + 1);
		if (r < 0)
			return r;
	}
	return level_load(w, l, dirs_fd(&w->dirs));
}

int walk_next(struct walk *w)
{
	for (;;) {
		struct walk_level *l = &w->levels[w->depth - 1];
		if (l->next < l->count) {
			const char *entry = l->order[l->next++];
			w->type = (unsigned char)entry[0];
			set_path(w, l->path_len, entry + 1);
			return w->path.failed ? -ENOMEM : 1;
		}
		int r = 0;
		if (l->more) {
			r = load_more(w, l);
		} else if (w->depth == 1) {
			return 0;
		} else {
			pop_level(w);
			r = dirs_leave(&w->dirs);
		}
		if (r < 0)
			return r;
	}
}

static bool is_kernels_own(int fd)
{
	struct statfs fs;
	return fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
		       fs.f_type == CGROUP2_SUPER_MAGIC || fs.f_type == CGROUP_SUPER_MAGIC);
}

int walk_enter(struct walk *w)
{
	if (w->path.len + NAME_MAX + 2 > WALK_PATH_MAX)
		return -ENAMETOOLONG;
	int r = dirs_enter(&w->dirs, w->name);
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
		return 0;
	if (r < 0)
		return r;
	const struct dir_id *ids = w->dirs.levels + w->dirs.depth;
	if (ids[-1].dev != ids[-2].dev && is_kernels_own(dirs_fd(&w->dirs))) {
		r = dirs_leave(&w->dirs);
		return r;
	}
	r = push_level(w);
	if (r == 0)
		r = keep_budget(w);
	return r < 0 ? r : 1;
}

int walk_fd(const struct walk *w)
{
	return dirs_fd(&w->dirs);
}

size_t walk_depth(const struct walk *w)
{
	return w->depth - 1;
}
