#include "cli/diff_filter.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/report.h"

/* ---- paths ---- */

static char *diff_filter_absolute(const char *path, const char *workdir)
{
	autobuf text = {0};
	/* "." in front keeps what follows from being absolute: it goes when it is cleaned. */
	buf_printf(&text, ".%s/%s", path[0] == '/' ? "" : workdir, path);
	autofree char *cleaned = buf_take_str(&text);
	if (!cleaned || !tar_clean_path(cleaned)) {
		cli_report(cleaned ? "%s: a path must not have \"..\"" : "out of memory", path);
		return NULL;
	}
	autobuf whole = {0};
	buf_append_char(&whole, '/');
	buf_append_str(&whole, cleaned);
	return buf_take_str(&whole);
}

int cli_diff_paths_init(struct diff_paths *p, char **operands, const char *workdir)
{
	size_t count = 0;
	while (operands[count])
		count++;
	p->paths = calloc(count + 1, sizeof *p->paths);
	for (size_t i = 0; p->paths && i < count; i++)
		if (!(p->paths[i] = diff_filter_absolute(operands[i], workdir))) {
			cli_diff_paths_finish(p);
			return -1;
		}
	return p->paths ? 0 : cli_report("out of memory");
}

void cli_diff_paths_finish(struct diff_paths *p)
{
	for (char **path = p->paths; path && *path; path++)
		free(*path);
	free(p->paths);
	p->paths = NULL;
}

static bool is_at_or_below(const char *path, const char *top)
{
	size_t len = strlen(top);
	if (len == 1) /* "/" */
		return true;
	return strncmp(path, top, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

bool cli_diff_paths_match(const struct diff_paths *p, const char *path, bool stands_for_below)
{
	if (!p->paths[0])
		return true;
	for (char **top = p->paths; *top; top++)
		if (is_at_or_below(path, *top) || (stands_for_below && is_at_or_below(*top, path)))
			return true;
	return false;
}

/* ---- text ---- */

static const char section[] = "diff --git ";

/* "a/PATH" as git quotes it, up to the quote; the slash of "a/" begins the path. */
static char *diff_filter_unquote(const char *at, const char *end)
{
	autobuf out = {0};
	for (; at < end && *at != '"'; at++) {
		if (*at != '\\' || end - at < 2) {
			buf_append_char(&out, *at);
		} else if (at[1] >= '0' && at[1] <= '3' && end - at >= 4) {
			buf_append_char(&out,
				(char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0')));
			at += 3;
		} else {
			buf_append_char(&out, *++at);
		}
	}
	return buf_take_str(&out);
}

/*
 * Returns the path of `diff --git a/PATH b/PATH`, where both are the same, or NULL without memory.
 */
static char *section_path(const struct buf *line)
{
	const char *at = line->data + sizeof section - 1, *end = line->data + line->len - 1;
	if (*at == '"')
		return diff_filter_unquote(at + 2, end);
	return strndup(at + 1, (size_t)(end - at - 1) / 2 - 1);
}

static const char *color_of(const char *line)
{
	static const struct {
		const char *begin, *color;
	} colors[] = {{"+++ ", "\033[1m"}, {"--- ", "\033[1m"}, {"diff ", "\033[1m"},
		{"+", "\033[32m"}, {"-", "\033[31m"}, {"@@", "\033[36m"}};
	for (size_t i = 0; i < ARRAY_LEN(colors); i++)
		if (strncmp(line, colors[i].begin, strlen(colors[i].begin)) == 0)
			return colors[i].color;
	return NULL;
}

static int write_for_people(struct diff_text *t)
{
	autobuf out = {0};
	const char *color = NULL;
	buf_append_char(&t->line, '\0');
	t->line.len--;
	if (t->colored)
		color = color_of(t->line.data);
	buf_append_str(&out, color ? color : "");
	for (size_t i = 0; i + 1 < t->line.len; i++) {
		unsigned char c = (unsigned char)t->line.data[i];
		buf_append_char(&out, (c < ' ' && c != '\t') || c == 0x7f ? '?' : (char)c);
	}
	buf_append_str(&out, color ? "\033[m\n" : "\n");
	return out.failed ? -1 : t->write(t->arg, out.data, out.len);
}

static int diff_filter_take_line(struct diff_text *t)
{
	size_t len = sizeof section - 1;
	if (t->line.failed)
		return cli_report("out of memory");
	if (t->line.len > len + 6 && memcmp(t->line.data, section, len) == 0) {
		autofree char *path = section_path(&t->line);
		t->wanted = path && cli_diff_paths_match(t->paths, path, false);
	}
	int r = 0;
	if (t->wanted && t->for_people)
		r = write_for_people(t);
	else if (t->wanted)
		r = t->write(t->arg, t->line.data, t->line.len);
	t->line.len = 0;
	return r;
}

int cli_diff_text_take(void *diff_text, const void *data, size_t size)
{
	struct diff_text *t = diff_text;
	const char *at = data, *end = at + size;
	while (at < end) {
		const char *feed = memchr(at, '\n', (size_t)(end - at));
		size_t len = feed ? (size_t)(feed - at) + 1 : (size_t)(end - at);
		buf_append(&t->line, at, len);
		at += len;
		if (feed && diff_filter_take_line(t) != 0)
			return -1;
	}
	return 0;
}

void cli_diff_text_finish(struct diff_text *t)
{
	buf_finish(&t->line);
}

/* ---- tar ---- */

static const char whiteout[] = ".wh.";

/* Returns the path that a member is about; a whiteout is about the path that it hides. */
static bool diff_filter_is_wanted(const struct diff_tar *t)
{
	autobuf path = {0};
	autofree char *name = strdup(t->tar.reader.member.path.data);
	if (!name || !tar_clean_path(name))
		return false;
	const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
	size_t mark = sizeof whiteout - 1;
	bool deleted = !t->tar.reader.member.plain && strncmp(last, whiteout, mark) == 0;
	buf_append_char(&path, '/');
	buf_append(&path, name, (size_t)(last - name));
	buf_append_str(&path, deleted ? last + mark : last);
	buf_append_char(&path, '\0');
	return !path.failed && cli_diff_paths_match(t->paths, path.data, deleted);
}

static int diff_filter_begin_member(struct diff_tar *t)
{
	autobuf header = {0};
	t->wanted = diff_filter_is_wanted(t);
	if (!t->wanted)
		return 0;
	tar_append_header(&header, &t->tar.reader.member);
	return header.failed ? -1 : t->write(t->arg, header.data, header.len);
}

static int diff_filter_write_content(struct diff_tar *t)
{
	static const char zeros[TAR_BLOCK];
	int r = t->wanted ? t->write(t->arg, t->tar.piece, t->tar.piece_len) : 0;
	if (r == 0 && t->wanted && t->tar.left == 0 && t->tar.padding > 0)
		r = t->write(t->arg, zeros, (size_t)t->tar.padding);
	return r;
}

int cli_diff_tar_take(void *diff_tar, const void *data, size_t size)
{
	struct diff_tar *t = diff_tar;
	int step, r = 0;
	tar_push_add(&t->tar, data, size);
	while (r == 0 && (step = tar_push_step(&t->tar)) != TAR_MORE && step != TAR_END) {
		if (step < 0)
			return cli_report("what the server sent is no archive");
		r = step == TAR_MEMBER ? diff_filter_begin_member(t) : diff_filter_write_content(t);
	}
	return r;
}

int cli_diff_tar_finish(struct diff_tar *t, bool ok)
{
	static const char zeros[2 * TAR_BLOCK];
	tar_push_finish(&t->tar);
	return ok ? t->write(t->arg, zeros, sizeof zeros) : 0;
}
