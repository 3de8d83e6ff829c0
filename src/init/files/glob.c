/*
 * A pattern is a set of alternatives (its braces, expanded), each a list of segments. Matching a
 * path walks the set of segments that could come next, name by name: its cost is that of the
 * lengths multiplied, whatever the pattern.
 */
#include "init/files/files.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALTERNATIVES_MAX 64
#define SEGMENTS_MAX     63
#define PATTERN_MAX      4096

struct alternative {
	char *text; /* segments, each with its NUL */
	const char *segments[SEGMENTS_MAX];
	size_t count;
};

struct glob {
	bool ignore_case;
	size_t count;
	struct alternative alternatives[ALTERNATIVES_MAX];
};

/* ---- braces ---- */

/* Returns the brace that closes the one at p, or NULL. */
static const char *closing_brace(const char *p)
{
	int depth = 0;
	for (; *p; p++) {
		if (*p == '\\' && p[1])
			p++;
		else if (*p == '{')
			depth++;
		else if (*p == '}' && --depth == 0)
			return p;
	}
	return NULL;
}

static const char *first_brace(const char *p)
{
	for (; *p; p++) {
		if (*p == '\\' && p[1])
			p++;
		else if (*p == '{' && closing_brace(p))
			return p;
	}
	return NULL;
}

static const char *next_comma(const char *p, const char *end)
{
	int depth = 0;
	for (; p < end; p++) {
		if (*p == '\\' && p + 1 < end)
			p++;
		else if (*p == '{')
			depth++;
		else if (*p == '}')
			depth--;
		else if (*p == ',' && depth == 0)
			return p;
	}
	return end;
}

/* Replaces list[index] by the expansions of its first brace. */
static int expand_one(char *list[ALTERNATIVES_MAX], size_t *count, size_t index)
{
	char *pattern = list[index];
	const char *open = first_brace(pattern), *close = closing_brace(open);
	const char *at = open + 1;
	list[index] = NULL;
	for (bool last = false; !last;) {
		const char *comma = next_comma(at, close);
		struct buf text = {0};
		last = comma == close;
		buf_append(&text, pattern, (size_t)(open - pattern));
		buf_append(&text, at, (size_t)(comma - at));
		buf_append_str(&text, close + 1);
		char *made = buf_take_str(&text);
		if (!made || (list[index] && *count == ALTERNATIVES_MAX)) {
			free(made);
			free(pattern);
			return made ? -EINVAL : -ENOMEM;
		}
		if (!list[index])
			list[index] = made;
		else
			list[(*count)++] = made;
		at = comma + 1;
	}
	free(pattern);
	return 0;
}

static int glob_expand(char *list[ALTERNATIVES_MAX], size_t *count)
{
	for (size_t i = 0; i < *count;) {
		if (!first_brace(list[i])) {
			i++;
			continue;
		}
		int r = expand_one(list, count, i);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- segments ---- */

static int add_segment(struct alternative *a, const char *segment)
{
	if (a->count == SEGMENTS_MAX)
		return -EINVAL;
	/* "**" twice in a row says no more than once. */
	if (strcmp(segment, "**") == 0 && a->count > 0 &&
		strcmp(a->segments[a->count - 1], "**") == 0)
		return 0;
	a->segments[a->count++] = segment;
	return 0;
}

/* Takes text. */
static int split_segments(struct alternative *a, char *text)
{
	a->text = text;
	int r = strchr(text, '/') ? 0 : add_segment(a, "**");
	for (char *at = text; r == 0 && at;) {
		char *slash = strchr(at, '/');
		if (slash)
			*slash = '\0';
		if (at[0] && strcmp(at, ".") != 0)
			r = add_segment(a, at);
		at = slash ? slash + 1 : NULL;
	}
	if (r < 0 || a->count == 0)
		return r < 0 ? r : -EINVAL;
	/* Everything below, but not the directory itself. */
	return strcmp(a->segments[a->count - 1], "**") == 0 ? add_segment(a, "*") : 0;
}

int glob_compile(const char *pattern, bool ignore_case, struct glob **ret)
{
	char *list[ALTERNATIVES_MAX] = {0};
	size_t count = 1;
	if (pattern[0] == '\0' || strlen(pattern) > PATTERN_MAX)
		return -EINVAL;
	struct glob *g = calloc(1, sizeof *g);
	list[0] = strdup(pattern);
	int r = g && list[0] ? glob_expand(list, &count) : -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (r < 0) {
			free(list[i]);
			continue;
		}
		g->count = i + 1;
		r = split_segments(&g->alternatives[i], list[i]);
	}
	if (r < 0) {
		glob_free(g);
		return r;
	}
	g->ignore_case = ignore_case;
	*ret = g;
	return 0;
}

void glob_free(struct glob *g)
{
	for (size_t i = 0; g && i < g->count; i++)
		free(g->alternatives[i].text);
	free(g);
}

/* ---- one name ---- */

static int glob_fold(int c, bool ignore_case)
{
	return ignore_case ? tolower(c) : c;
}

/* "[…]" at p: whether c is in it, and where it ends. NULL: it is not a set, but a bracket. */
static const char *match_set(const char *p, unsigned char c, bool ignore_case, bool *matches)
{
	bool negated = p[1] == '!' || p[1] == '^', found = false;
	const char *at = p + 1 + negated, *first = at;
	int wanted = glob_fold(c, ignore_case);
	for (; *at && (*at != ']' || at == first); at++) {
		unsigned char low = (unsigned char)*at, high = low;
		if (at[1] == '-' && at[2] && at[2] != ']') {
			high = (unsigned char)at[2];
			at += 2;
		}
		found |= (c >= low && c <= high) || (wanted >= glob_fold(low, ignore_case) &&
							    wanted <= glob_fold(high, ignore_case));
	}
	*matches = found != negated;
	return *at == ']' ? at + 1 : NULL;
}

/* Matches one pattern element other than "*". Returns the rest of the pattern, NULL on mismatch. */
static const char *glob_match_one(const char *p, char c, bool ignore_case)
{
	bool matches;
	if (*p == '?')
		return p + 1;
	const char *behind =
		*p == '[' ? match_set(p, (unsigned char)c, ignore_case, &matches) : NULL;
	if (behind)
		return matches ? behind : NULL;
	if (*p == '\\' && p[1])
		p++;
	return glob_fold((unsigned char)*p, ignore_case) == glob_fold((unsigned char)c, ignore_case)
		       ? p + 1
		       : NULL;
}

/* With one star to go back to: an earlier one can never do better than the last. */
static bool match_name(const char *p, const char *name, size_t len, bool ignore_case)
{
	const char *end = name + len, *star = NULL, *tried = NULL;
	while (name < end) {
		const char *next;
		if (*p == '*') {
			star = ++p;
			tried = name;
		} else if (*p && (next = glob_match_one(p, *name, ignore_case)) != NULL) {
			p = next;
			name++;
		} else if (star) {
			p = star;
			name = ++tried;
		} else {
			return false;
		}
	}
	while (*p == '*')
		p++;
	return *p == '\0';
}

/* ---- paths ---- */

static bool is_any(const char *segment)
{
	return strcmp(segment, "**") == 0;
}

/* "**" may match nothing, so the segment after it can come next, too. */
static uint64_t close_over(const struct alternative *a, uint64_t states)
{
	for (size_t i = 0; i < a->count; i++)
		if ((states >> i & 1) && is_any(a->segments[i]))
			states |= UINT64_C(2) << i;
	return states;
}

/* The segments that can follow the path; bit a->count: all have been matched. */
static uint64_t glob_advance(const struct alternative *a, const char *path, bool ignore_case)
{
	uint64_t states = close_over(a, 1);
	while (*path && states) {
		size_t len = strcspn(path, "/");
		uint64_t next = 0;
		for (size_t i = 0; i < a->count; i++) {
			if (!(states >> i & 1))
				continue;
			if (is_any(a->segments[i]))
				next |= UINT64_C(1) << i;
			else if (match_name(a->segments[i], path, len, ignore_case))
				next |= UINT64_C(2) << i;
		}
		states = close_over(a, next);
		path += len + (path[len] == '/');
	}
	return states;
}

bool glob_match(const struct glob *g, const char *path)
{
	for (size_t i = 0; i < g->count; i++) {
		const struct alternative *a = &g->alternatives[i];
		if (glob_advance(a, path, g->ignore_case) >> a->count & 1)
			return true;
	}
	return false;
}

bool glob_may_match_below(const struct glob *g, const char *path)
{
	for (size_t i = 0; i < g->count; i++) {
		const struct alternative *a = &g->alternatives[i];
		if (glob_advance(a, path, g->ignore_case) & ((UINT64_C(1) << a->count) - 1))
			return true;
	}
	return false;
}
