/*
 * Files that a build leaves out of its context: the patterns of .dockerignore. A pattern is about a
 * path and all that is below it; one with '!' takes back what an earlier one said; the last that
 * matches counts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ignore {
	char **patterns; /* "!" in front: an exception */
	size_t count;
	bool has_exceptions;
};

/* Parses the text of such a file. Returns -1 without memory. */
int cli_ignore_parse(struct ignore *i, const char *text, size_t len);
void cli_ignore_finish(struct ignore *i);
/* A relative path without "." and "..". */
bool cli_ignore_matches(const struct ignore *i, const char *path);
/* A pattern against all of a path: '*', '?', '[...]' within a name, "**" across names. */
bool cli_ignore_match_pattern(const char *pattern, const char *path);
