#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LOOKED_AT (8u * 1024) /* of a file, for the NUL that text does not have */

/* ---- one file ---- */

static int text_fill(struct text *t)
{
	memmove(t->bytes, t->bytes + t->start, t->end - t->start);
	t->end -= t->start;
	t->start = 0;
	while (!t->at_end && t->end < TEXT_MAX) {
		ssize_t n = read(t->fd, t->bytes + t->end, TEXT_MAX - t->end);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		t->end += (size_t)n;
		t->at_end = n == 0;
	}
	return 0;
}

int text_open(struct text *t, int dir_fd, const char *name)
{
	static char *bytes; /* one file at a time: it is kept for the next */
	struct stat st;
	*t = (struct text){.fd = -1};
	if (!bytes && !(bytes = malloc(TEXT_MAX + 1)))
		return -ENOMEM;
	t->bytes = bytes;
	t->fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (t->fd < 0 || fstat(t->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
	int r = text_fill(t);
	size_t looked = t->end < LOOKED_AT ? t->end : LOOKED_AT;
	return r == 0 && looked && memchr(t->bytes, '\0', looked) ? -ENOEXEC : r;
}

void text_finish(struct text *t)
{
	if (t->fd >= 0)
		close(t->fd);
}

int text_next(struct text *t, char **block, size_t *len)
{
	int r = t->start > 0 || t->end == 0 ? text_fill(t) : 0;
	if (r < 0 || t->end == 0)
		return r;
	char *newline = t->at_end ? NULL : memrchr(t->bytes, '\n', t->end);
	*block = t->bytes;
	*len = newline ? (size_t)(newline + 1 - t->bytes) : t->end;
	t->start = *len;
	return 1;
}

/* ---- needles ---- */

/* As an expression that stands for this text. */
static char *text_quote(const char *text)
{
	struct buf out = {0};
	for (; *text; text++) {
		if (strchr("\\^$.[]|()*+?{}", *text))
			buf_append_char(&out, '\\');
		buf_append_char(&out, *text);
	}
	return buf_take_str(&out);
}

int needle_compile(struct needle *n, const struct file_request *r)
{
	const char *pattern = r->text[FILE_PATTERN];
	*n = (struct needle){.fixed = NULL};
	if (pattern[0] == '\0')
		return -EINVAL;
	if (!(r->fixed.flags & (FILE_REGEX | FILE_IGNORE_CASE))) {
		n->fixed = pattern;
		n->fixed_len = strlen(pattern);
		return 0;
	}
	autofree char *quoted = r->fixed.flags & FILE_REGEX ? NULL : text_quote(pattern);
	int flags = REG_EXTENDED | (r->fixed.flags & FILE_IGNORE_CASE ? REG_ICASE : 0);
	int e = regcomp(&n->expression, quoted ? quoted : pattern, flags);
	return e == 0 ? 0 : e == REG_ESPACE ? -ENOMEM : -EINVAL;
}

void needle_finish(struct needle *n)
{
	if (!n->fixed)
		regfree(&n->expression);
}

/* ---- many files ---- */

struct searching {
	const struct glob *glob;
	each_file_fn *each;
	void *arg;
	struct buf path;
	size_t prefix;
};

/* Unreadable files are skipped, and the search goes on. */
static int search_entry(struct searching *s, struct walk *w)
{
	if (w->type == DT_DIR) {
		int r = walk_enter(w);
		return r == -EACCES || r == -ENAMETOOLONG ? 0 : r < 0 ? r : 0;
	}
	if (w->type != DT_REG || (s->glob && !glob_match(s->glob, w->path.data)))
		return 0;
	s->path.len = s->prefix;
	buf_append(&s->path, w->path.data, w->path.len + 1);
	if (s->path.failed)
		return -ENOMEM;
	return s->each(s->arg, walk_fd(w), w->name, s->path.data);
}

static int search_below(struct searching *s, int fd)
{
	struct walk w;
	int r = walk_open(&w, fd, "", SIZE_MAX);
	s->prefix = s->path.len - 1;
	if (s->path.data[s->prefix - 1] != '/')
		s->path.data[s->prefix++] = '/';
	while (r == 0 && (r = walk_next(&w)) > 0)
		r = search_entry(s, &w);
	walk_finish(&w);
	return r;
}

int text_each_file(const struct file_request *r, each_file_fn *each, void *arg, struct outcome *o)
{
	struct searching s = {.each = each, .arg = arg};
	struct glob *glob = NULL;
	struct stat st;
	const char *path = r->text[FILE_PATH], *pattern = r->text[FILE_OTHER];
	int e = pattern[0] ? glob_compile(pattern, false, &glob) : 0;
	if (e < 0)
		return serve_fail(o, e, pattern);
	s.glob = glob;
	e = path_absolute(path, &s.path);
	if (e == 0 && stat(path, &st) < 0)
		e = -errno;
	if (e == 0 && !S_ISDIR(st.st_mode)) {
		e = S_ISREG(st.st_mode) ? each(arg, AT_FDCWD, path, s.path.data) : -ENXIO;
	} else if (e == 0) {
		int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		e = fd < 0 ? -errno : search_below(&s, fd);
	}
	glob_free(glob);
	buf_finish(&s.path);
	return e < 0 ? e : 0;
}
