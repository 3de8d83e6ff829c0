/*
 * GREP: the lines that have a text or match an expression, one answer a line. Files with a NUL in
 * their first bytes are no text and are skipped.
 */
#include "init/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define SHOWN_MAX 4096u

struct grepping {
	const struct file_request *request;
	struct outcome *outcome;
	struct needle needle;
};

/* A place in the file being read. */
struct cursor {
	const char *path;
	uint64_t line; /* of what comes next */
};

/* Returns 1 when the limit of matches is reached. */
static int grep_put_match(
	struct grepping *g, const struct cursor *c, const char *line, size_t len, size_t column)
{
	if (g->outcome->count == g->request->fixed.limit) {
		g->outcome->truncated = true;
		return 1;
	}
	g->outcome->count++;
	if (len > 0 && line[len - 1] == '\r')
		len--;
	size_t shown = len < SHOWN_MAX ? len : SHOWN_MAX;
	struct record_text texts[] = {{c->path, strlen(c->path)}, {line, shown}};
	struct record_match m = {
		.line = c->line,
		.column = (uint32_t)column + 1,
		.cut = shown < len,
		.path_len = (uint32_t)texts[0].len,
		.text_len = (uint32_t)shown,
	};
	return io_put(RECORD_MATCH, &m, sizeof m, texts, 2);
}

static uint64_t count_lines(const char *from, const char *to)
{
	uint64_t n = 0;
	while (from < to && (from = memchr(from, '\n', (size_t)(to - from))) != NULL) {
		n++;
		from++;
	}
	return n;
}

/* Lines are only counted up to where something is found. */
static int grep_fixed(struct grepping *g, struct cursor *c, const char *block, size_t len)
{
	const char *at = block, *counted = block, *end = block + len;
	while (at < end) {
		const char *hit =
			memmem(at, (size_t)(end - at), g->needle.fixed, g->needle.fixed_len);
		if (!hit)
			break;
		const char *start = memrchr(block, '\n', (size_t)(hit - block));
		const char *stop = memchr(hit, '\n', (size_t)(end - hit));
		start = start ? start + 1 : block;
		stop = stop ? stop : end;
		c->line += count_lines(counted, start);
		counted = start;
		int r = grep_put_match(g, c, start, (size_t)(stop - start), (size_t)(hit - start));
		if (r != 0)
			return r;
		at = stop + 1;
	}
	c->line += count_lines(counted, end);
	return 0;
}

static int grep_expression(struct grepping *g, struct cursor *c, char *block, size_t len)
{
	char *at = block, *end = block + len;
	while (at < end) {
		regmatch_t match;
		char *newline = memchr(at, '\n', (size_t)(end - at));
		char *stop = newline ? newline : end, saved = *stop;
		*stop = '\0';
		bool found = regexec(&g->needle.expression, at, 1, &match, 0) == 0;
		*stop = saved;
		int r = found ? grep_put_match(g, c, at, (size_t)(stop - at), (size_t)match.rm_so)
			      : 0;
		if (r != 0)
			return r;
		c->line += newline != NULL;
		at = stop + 1;
	}
	return 0;
}

static int grep_file(void *arg, int dir_fd, const char *name, const char *path)
{
	struct grepping *g = arg;
	struct cursor c = {path, 1};
	struct text t;
	char *block;
	size_t len;
	int r = text_open(&t, dir_fd, name);
	while (r == 0 && (r = text_next(&t, &block, &len)) > 0)
		r = g->needle.fixed ? grep_fixed(g, &c, block, len)
				    : grep_expression(g, &c, block, len);
	text_finish(&t);
	/* In a tree an unreadable file is skipped and the search goes on. */
	bool skipped = r == -ENOEXEC || (dir_fd != AT_FDCWD && r != -ECONNRESET && r != -ENOMEM);
	return r < 0 && skipped ? 0 : r;
}

int file_grep(const struct file_request *r, struct outcome *o)
{
	struct grepping g = {.request = r, .outcome = o};
	int e = needle_compile(&g.needle, r);
	if (e < 0)
		return serve_fail(o, e, r->text[FILE_PATTERN]);
	/* A line has no line end in it. */
	e = strchr(r->text[FILE_PATTERN], '\n') ? serve_fail(o, -EINVAL, r->text[FILE_PATTERN])
						: text_each_file(r, grep_file, &g, o);
	needle_finish(&g.needle);
	return e;
}
