/*
 * REPLACE: a text, or what matches an expression line by line, by another. A file is looked through
 * first, and written (beside its place, then renamed) only when there is something to replace. With
 * an expression, \1 to \9 and \0 in the new text stand for what was matched.
 */
#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#define GROUPS 10

struct replacing {
	const struct file_request *request;
	struct outcome *outcome;
	struct needle needle;
	const char *text;
};

/* The new content; with fd -1 nothing is written. */
struct sink {
	int fd;
	struct buf pending;
};

static int sink_flush(struct sink *s)
{
	int r = s->pending.failed ? -ENOMEM : fd_write_all(s->fd, s->pending.data, s->pending.len);
	s->pending.len = 0;
	return r;
}

static int sink_put(struct sink *s, const char *bytes, size_t len)
{
	if (s->fd < 0)
		return 0;
	buf_append(&s->pending, bytes, len);
	return s->pending.len < TEXT_MAX / 4 && !s->pending.failed ? 0 : sink_flush(s);
}

/* ---- text ---- */

/* In whatever pieces it comes, a match may be across two of them: the end of one is kept for the
 * next. */
static int replace_fixed(struct replacing *g, struct text *t, struct sink *s, uint64_t *count)
{
	const struct needle *n = &g->needle;
	size_t text_len = strlen(g->text);
	autobuf held = {0};
	char *block;
	size_t len;
	int r;
	while ((r = text_next(t, &block, &len)) > 0) {
		buf_append(&held, block, len);
		if (held.failed)
			return -ENOMEM;
		const char *at = held.data, *end = held.data + held.len, *hit;
		r = 0;
		while (r == 0 && (hit = memmem(at, (size_t)(end - at), n->fixed, n->fixed_len))) {
			r = sink_put(s, at, (size_t)(hit - at));
			if (r == 0)
				r = sink_put(s, g->text, text_len);
			at = hit + n->fixed_len;
			(*count)++;
		}
		size_t left = (size_t)(end - at);
		size_t keep = left < n->fixed_len - 1 ? left : n->fixed_len - 1;
		if (r == 0)
			r = sink_put(s, at, left - keep);
		if (r < 0)
			return r;
		buf_consume(&held, held.len - keep);
	}
	return r < 0 ? r : sink_put(s, held.data, held.len);
}

/* ---- expressions ---- */

static int put_replacement(
	const struct replacing *g, struct sink *s, const char *line, const regmatch_t *groups)
{
	int r = 0;
	for (const char *p = g->text; r == 0 && *p; p++) {
		if (*p != '\\' || !p[1]) {
			r = sink_put(s, p, 1);
			continue;
		}
		p++;
		int number = *p - '0';
		if (number < 0 || number > 9)
			r = sink_put(s, p, 1);
		else if (groups[number].rm_so >= 0)
			r = sink_put(s, line + groups[number].rm_so,
				(size_t)(groups[number].rm_eo - groups[number].rm_so));
	}
	return r;
}

/* One line, NUL-terminated at its end. */
static int replace_line(
	struct replacing *g, struct sink *s, const char *line, const char *end, uint64_t *count)
{
	regmatch_t groups[GROUPS];
	int flags = 0, r = 0;
	while (r == 0 && regexec(&g->needle.expression, line, GROUPS, groups, flags) == 0) {
		r = sink_put(s, line, (size_t)groups[0].rm_so);
		if (r == 0)
			r = put_replacement(g, s, line, groups);
		(*count)++;
		bool empty = groups[0].rm_eo == groups[0].rm_so;
		line += groups[0].rm_eo;
		flags = REG_NOTBOL;
		if (!empty)
			continue;
		if (line >= end)
			return r;
		if (r == 0)
			r = sink_put(s, line++, 1);
	}
	return r < 0 ? r : sink_put(s, line, (size_t)(end - line));
}

static int replace_expression(struct replacing *g, struct text *t, struct sink *s, uint64_t *count)
{
	char *block;
	size_t len;
	int r;
	while ((r = text_next(t, &block, &len)) > 0) {
		for (char *at = block, *end = block + len; at < end;) {
			char *newline = memchr(at, '\n', (size_t)(end - at));
			char *stop = newline ? newline : end, saved = *stop;
			*stop = '\0';
			/* A line with a NUL in it is left as it is. */
			r = strlen(at) == (size_t)(stop - at)
				    ? replace_line(g, s, at, stop, count)
				    : sink_put(s, at, (size_t)(stop - at));
			*stop = saved;
			if (r == 0 && newline)
				r = sink_put(s, "\n", 1);
			if (r < 0)
				return r;
			at = stop + 1;
		}
	}
	return r;
}

/* ---- files ---- */

/* Once through the file; fd -1: only to count. */
static int replace_once(struct replacing *g, int dir_fd, const char *name, int fd, uint64_t *count)
{
	struct text t;
	struct sink s = {.fd = fd};
	*count = 0;
	int r = text_open(&t, dir_fd, name);
	if (r == 0 && fd >= 0)
		copy_attributes(t.fd, fd);
	if (r == 0)
		r = g->needle.fixed ? replace_fixed(g, &t, &s, count)
				    : replace_expression(g, &t, &s, count);
	if (r == 0 && fd >= 0)
		r = sink_flush(&s);
	buf_finish(&s.pending);
	text_finish(&t);
	return r;
}

static int write_replaced(
	struct replacing *g, int dir_fd, const char *name, const char *path, uint64_t *count)
{
	struct target_file p;
	struct record_file how = {.flags = FILE_ATOMIC};
	int r = target_file_open(&p, path, &how, (uid_t)-1, (gid_t)-1);
	if (r == 0)
		r = replace_once(g, dir_fd, name, p.fd, count);
	if (r == 0)
		r = target_file_commit(&p);
	target_file_finish(&p);
	return r;
}

static int replace_file(void *arg, int dir_fd, const char *name, const char *path)
{
	struct replacing *g = arg;
	uint64_t count = 0;
	if (g->outcome->count == g->request->fixed.limit) {
		g->outcome->truncated = true;
		return 1;
	}
	int r = replace_once(g, dir_fd, name, -1, &count);
	/* Skips binary files and, in a tree, unreadable ones. */
	bool unreadable = r == -ENXIO || r == -EACCES || r == -ENOENT;
	if (r == -ENOEXEC || (unreadable && dir_fd != AT_FDCWD) || (r == 0 && count == 0))
		return 0;
	if (r == 0 && !(g->request->fixed.flags & FILE_DRY_RUN))
		r = write_replaced(g, dir_fd, name, path, &count);
	if (r < 0)
		return serve_fail(g->outcome, r, path);
	g->outcome->count++;
	struct record_text text = {path, strlen(path)};
	struct record_change c = {.count = count, .path_len = (uint32_t)text.len};
	return io_put(RECORD_CHANGE, &c, sizeof c, &text, 1);
}

int file_replace(const struct file_request *r, struct outcome *o)
{
	struct replacing g = {.request = r, .outcome = o, .text = r->text[FILE_EXTRA]};
	int e = needle_compile(&g.needle, r);
	if (e < 0)
		return serve_fail(o, e, r->text[FILE_PATTERN]);
	e = text_each_file(r, replace_file, &g, o);
	needle_finish(&g.needle);
	return e;
}
