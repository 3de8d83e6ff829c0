/*
 * Differences as text, in the unified form that git understands. Files that are long, or no text,
 * are named only. Names with control bytes or quotes are written as git quotes them.
 */
#include "keeper/diff.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"

#define TEXT_MAX  (1u << 20)
#define LINES_MAX 50000u
#define CONTEXT   3
#define SNIFFED   8000

/* ---- texts ---- */

struct text {
	bool exists;
	bool is_text;
	struct buf bytes;
	struct line *lines;
	size_t count;
	bool *stays;
};

static void diff_text_finish(struct text *t)
{
	buf_finish(&t->bytes);
	free(t->lines);
	free(t->stays);
}

static bool split_lines(struct text *t)
{
	size_t count = t->bytes.len > 0;
	for (size_t i = 0; i + 1 < t->bytes.len; i++)
		count += t->bytes.data[i] == '\n';
	if (count > LINES_MAX)
		return false;
	t->lines = calloc(count + 1, sizeof *t->lines);
	t->stays = calloc(count + 1, sizeof *t->stays);
	if (!t->lines || !t->stays)
		return false;
	const char *at = t->bytes.data, *end = at + t->bytes.len;
	for (; t->count < count; t->count++) {
		const char *feed = memchr(at, '\n', (size_t)(end - at));
		size_t len = feed ? (size_t)(feed - at) + 1 : (size_t)(end - at);
		t->lines[t->count] = (struct line){at, len};
		at += len;
	}
	return true;
}

static int read_bytes(const struct view_entry *e, const char *name, struct buf *out)
{
	if (S_ISLNK(e->st.st_mode)) {
		char target[PATH_MAX];
		ssize_t n = readlinkat(e->dir_fd, name, target, sizeof target);
		if (n < 0)
			return -errno;
		buf_append(out, target, (size_t)n);
		return 0;
	}
	if (!S_ISREG(e->st.st_mode) || e->st.st_size > TEXT_MAX)
		return -EFBIG;
	autoclose int fd = diff_open_file(e, name);
	return fd < 0 ? fd : fd_read_all(fd, out, TEXT_MAX);
}

static void text_load(struct text *t, const struct view_entry *e, const char *name)
{
	*t = (struct text){.exists = e->exists && !S_ISDIR(e->st.st_mode), .is_text = true};
	if (!t->exists)
		return;
	size_t sniffed;
	t->is_text = read_bytes(e, name, &t->bytes) == 0 && !t->bytes.failed;
	sniffed = t->bytes.len < SNIFFED ? t->bytes.len : SNIFFED;
	if (t->is_text && sniffed > 0 && memchr(t->bytes.data, '\0', sniffed))
		t->is_text = false;
	if (t->is_text)
		t->is_text = split_lines(t);
}

/* ---- heads ---- */

static void diff_text_put_quoted(struct buf *out, const char *prefix, const char *path)
{
	bool plain = true;
	for (const unsigned char *c = (const unsigned char *)path; *c; c++)
		plain &= *c >= 32 && *c != 127 && *c != '"' && *c != '\\';
	if (plain) {
		buf_printf(out, "%s%s", prefix, path);
		return;
	}
	buf_printf(out, "\"%s", prefix);
	for (const unsigned char *c = (const unsigned char *)path; *c; c++) {
		if (*c == '"' || *c == '\\')
			buf_printf(out, "\\%c", *c);
		else if (*c < 32 || *c == 127)
			buf_printf(out, "\\%03o", *c);
		else
			buf_append_char(out, (char)*c);
	}
	buf_append_char(out, '"');
}

/* As git writes it: regular files are 644 or 755, links 120000. */
static unsigned git_mode(const struct stat *st)
{
	return S_ISLNK(st->st_mode) ? 0120000 : 0100000 | (st->st_mode & 0777);
}

static void put_head(
	struct buf *out, const struct change *c, const struct text *old, const struct text *new)
{
	buf_append_str(out, "diff --git ");
	diff_text_put_quoted(out, "a", c->path);
	buf_append_char(out, ' ');
	diff_text_put_quoted(out, "b", c->path);
	buf_append_char(out, '\n');
	unsigned old_mode = old->exists ? git_mode(&c->old->st) : 0;
	unsigned new_mode = new->exists ? git_mode(&c->new->st) : 0;
	if (!old->exists)
		buf_printf(out, "new file mode %06o\n", new_mode);
	else if (!new->exists)
		buf_printf(out, "deleted file mode %06o\n", old_mode);
	else if (old_mode != new_mode)
		buf_printf(out, "old mode %06o\nnew mode %06o\n", old_mode, new_mode);
}

static void put_names(
	struct buf *out, const struct change *c, const struct text *old, const struct text *new)
{
	buf_append_str(out, "--- ");
	if (old->exists)
		diff_text_put_quoted(out, "a", c->path);
	else
		buf_append_str(out, "/dev/null");
	buf_append_str(out, "\n+++ ");
	if (new->exists)
		diff_text_put_quoted(out, "b", c->path);
	else
		buf_append_str(out, "/dev/null");
	buf_append_char(out, '\n');
}

/* ---- hunks ---- */

static void diff_text_put_line(struct buf *out, char sign, const struct line *l)
{
	buf_append_char(out, sign);
	buf_append(out, l->text, l->len);
	if (l->len == 0 || l->text[l->len - 1] != '\n')
		buf_append_str(out, "\n\\ No newline at end of file\n");
}

/* Finds the end of a hunk: differences that are less than two contexts apart belong together. */
static void hunk_end(const struct text *old, const struct text *new, size_t *x, size_t *y)
{
	size_t same = 0, end_x = *x, end_y = *y, i = *x, k = *y;
	while ((i < old->count || k < new->count) && same <= 2 * CONTEXT) {
		if (i < old->count && k < new->count && old->stays[i] && new->stays[k]) {
			i++, k++, same++;
			continue;
		}
		if (i < old->count && !old->stays[i])
			i++;
		else
			k++;
		same = 0;
		end_x = i;
		end_y = k;
	}
	*x = end_x;
	*y = end_y;
}

static void put_lines(struct buf *out, const struct text *old, size_t x, size_t end_x,
	const struct text *new, size_t y, size_t end_y)
{
	while (x < end_x || y < end_y) {
		/* A text without lines has no marks and an end of 0. */
		// NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
		if (x < end_x && y < end_y && old->stays[x] && new->stays[y]) {
			diff_text_put_line(out, ' ', &old->lines[x]);
			x++, y++;
			// NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
		} else if (x < end_x && !old->stays[x]) {
			diff_text_put_line(out, '-', &old->lines[x++]);
		} else {
			diff_text_put_line(out, '+', &new->lines[y++]);
		}
	}
}

static void put_hunk(struct buf *out, const struct text *old, size_t x, size_t end_x,
	const struct text *new, size_t y, size_t end_y)
{
	size_t before = x < y ? x : y, after = old->count - end_x;
	before = before < CONTEXT ? before : CONTEXT;
	after = after < new->count - end_y ? after : new->count - end_y;
	after = after < CONTEXT ? after : CONTEXT;
	x -= before;
	y -= before;
	end_x += after;
	end_y += after;
	buf_printf(out, "@@ -%zu,%zu +%zu,%zu @@\n", end_x > x ? x + 1 : x, end_x - x,
		end_y > y ? y + 1 : y, end_y - y);
	put_lines(out, old, x, end_x, new, y, end_y);
}

static void put_hunks(struct buf *out, struct text *old, struct text *new)
{
	size_t x = 0, y = 0;
	/* If the texts are too different, only the common head and tail stay. */
	lines_compare(old->lines, old->count, old->stays, new->lines, new->count, new->stays);
	while (x < old->count || y < new->count) {
		if (x < old->count && y < new->count && old->stays[x] && new->stays[y]) {
			x++, y++;
			continue;
		}
		size_t end_x = x, end_y = y;
		hunk_end(old, new, &end_x, &end_y);
		put_hunk(out, old, x, end_x, new, y, end_y);
		x = end_x;
		y = end_y;
	}
}

static bool diff_text_is_same(const struct text *old, const struct text *new)
{
	return old->exists && new->exists && old->bytes.len == new->bytes.len &&
	       (old->bytes.len == 0 ||
		       memcmp(old->bytes.data, new->bytes.data, old->bytes.len) == 0);
}

static void diff_text_put_change(
	struct buf *out, const struct change *c, struct text *old, struct text *new)
{
	put_head(out, c, old, new);
	if (!old->is_text || !new->is_text) {
		buf_append_str(out, "Binary files ");
		diff_text_put_quoted(out, "a", c->path);
		buf_append_str(out, " and ");
		diff_text_put_quoted(out, "b", c->path);
		buf_append_str(out, " differ\n");
	} else if (!diff_text_is_same(old, new) && old->count + new->count > 0) {
		put_names(out, c, old, new);
		put_hunks(out, old, new);
	}
}

int text_write_change(void *arg, const struct change *c)
{
	struct text old, new;
	autobuf out = {0};
	text_load(&old, c->old, c->name);
	text_load(&new, c->new, c->name);
	if (old.exists || new.exists)
		diff_text_put_change(&out, c, &old, &new);
	diff_text_finish(&old);
	diff_text_finish(&new);
	return out.failed ? -ENOMEM : diff_out_bytes(arg, out.data, out.len);
}
