#include "cli/ignore.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define PATTERNS_MAX 10000
#define PATTERN_MAX  4096

/* ---- patterns ---- */

/* "[a-z]" or "[^a]"; *length is that of the class, 0 when it is none. */
static bool match_class(const char *pattern, char c, size_t *length)
{
	const char *at = pattern + 1;
	bool negated = *at == '^' || *at == '!', found = false;
	at += negated;
	for (bool first = true; *at && (*at != ']' || first); first = false) {
		char low = *at == '\\' && at[1] ? *++at : *at;
		char high = low;
		at++;
		if (*at == '-' && at[1] && at[1] != ']') {
			high = at[1] == '\\' && at[2] ? at[2] : at[1];
			at += at[1] == '\\' && at[2] ? 3 : 2;
		}
		found |= c >= low && c <= high;
	}
	*length = *at == ']' ? (size_t)(at + 1 - pattern) : 0;
	return *length > 0 && found != negated;
}

/* One character of a path; how much of the pattern it took, or 0. */
static size_t ignore_match_one(const char *pattern, char c)
{
	size_t length;
	if (!c || c == '/')
		return 0;
	if (*pattern == '?')
		return 1;
	if (*pattern == '[' && match_class(pattern, c, &length))
		return length;
	if (*pattern == '\\' && pattern[1])
		return pattern[1] == c ? 2 : 0;
	return *pattern == c && *pattern != '[' ? 1 : 0;
}

/* By steps, of which there are at most so many: stars can be made to try for ever. */
static bool ignore_match(const char *pattern, const char *path, unsigned *budget)
{
	if ((*budget)-- == 0)
		return false;
	if (!*pattern)
		return !*path;
	if (pattern[0] == '*' && pattern[1] == '*') {
		const char *rest = pattern + 2 + (pattern[2] == '/');
		for (const char *at = path;; at++) {
			bool border = at == path || at[-1] == '/' || pattern[2] != '/';
			if (border && ignore_match(rest, at, budget))
				return true;
			if (!*at || *budget == 0)
				return false;
		}
	}
	if (*pattern == '*') {
		for (const char *at = path;; at++) {
			if (ignore_match(pattern + 1, at, budget))
				return true;
			if (!*at || *at == '/' || *budget == 0)
				return false;
		}
	}
	if (*pattern == '/')
		return *path == '/' && ignore_match(pattern + 1, path + 1, budget);
	size_t taken = ignore_match_one(pattern, *path);
	return taken > 0 && ignore_match(pattern + taken, path + 1, budget);
}

bool cli_ignore_match_pattern(const char *pattern, const char *path)
{
	unsigned budget = 100000;
	return ignore_match(pattern, path, &budget);
}

/* The path, or a directory that it is in. */
static bool matches_or_contains(const char *pattern, const char *path)
{
	char prefix[PATTERN_MAX];
	size_t len = strlen(path);
	if (len >= sizeof prefix)
		return false;
	if (cli_ignore_match_pattern(pattern, path))
		return true;
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		memcpy(prefix, path, (size_t)(slash - path));
		prefix[slash - path] = '\0';
		if (cli_ignore_match_pattern(pattern, prefix))
			return true;
	}
	return false;
}

bool cli_ignore_matches(const struct ignore *i, const char *path)
{
	bool ignored = false;
	for (size_t n = 0; n < i->count; n++) {
		bool exception = i->patterns[n][0] == '!';
		if (ignored == exception && matches_or_contains(i->patterns[n] + exception, path))
			ignored = !exception;
	}
	return ignored;
}

/* ---- the file ---- */

static bool ignore_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Without spaces, and without slashes at the ends; as it will be compared. Owned, "": nothing. */
static char *ignore_clean(const char *line, size_t len)
{
	char *made = malloc(len + 2), *out = made;
	if (!made)
		return NULL;
	while (len > 0 && ignore_is_space(line[len - 1]))
		len--;
	while (len > 0 && ignore_is_space(*line)) {
		line++;
		len--;
	}
	if (len > 0 && *line == '!') {
		*out++ = *line++;
		len--;
	}
	while (len > 0 && (ignore_is_space(*line) || *line == '/' ||
				  (len > 1 && line[0] == '.' && line[1] == '/'))) {
		line++;
		len--;
	}
	while (len > 0 && line[len - 1] == '/')
		len--;
	memcpy(out, line, len);
	out[len] = '\0';
	return made;
}

int cli_ignore_parse(struct ignore *i, const char *text, size_t len)
{
	*i = (struct ignore){0};
	i->patterns = calloc(PATTERNS_MAX, sizeof *i->patterns);
	if (!i->patterns)
		return -1;
	while (len > 0 && i->count < PATTERNS_MAX) {
		const char *end = memchr(text, '\n', len);
		size_t line = end ? (size_t)(end - text) : len;
		char *pattern = *text == '#' ? calloc(1, 1) : ignore_clean(text, line);
		if (!pattern)
			return -1;
		if (pattern[0] && strcmp(pattern, "!") != 0 && strlen(pattern) < PATTERN_MAX) {
			i->has_exceptions |= pattern[0] == '!';
			i->patterns[i->count++] = pattern;
		} else {
			free(pattern);
		}
		size_t used = end ? line + 1 : line;
		text += used;
		len -= used;
	}
	return 0;
}

void cli_ignore_finish(struct ignore *i)
{
	for (size_t n = 0; n < i->count; n++)
		free(i->patterns[n]);
	free(i->patterns);
	*i = (struct ignore){0};
}
