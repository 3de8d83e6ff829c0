/*
 * The one JSON scanner: takes text apart into tokens by RFC 8259's grammar, without a tree and
 * without recursion. The text may be there as a whole or come in pieces; json_parse, json_push and
 * json_is_line are made of it.
 *
 * The scanner refuses text that is not UTF-8, control characters in strings, nesting beyond
 * max_depth and trailing text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_SCAN_DEPTH_MAX 64
/* The longest number: cJSON truncates longer ones. */
#define JSON_SCAN_LITERAL_MAX 63

enum json_token {
	JSON_MORE, /* nothing can be said before more bytes come */
	JSON_BEGIN_OBJECT,
	JSON_END_OBJECT,
	JSON_BEGIN_ARRAY,
	JSON_END_ARRAY,
	JSON_KEY,      /* the end of a key */
	JSON_PIECE,    /* some of a key or string */
	JSON_TEXT_END, /* the end of a string; an empty one has no piece */
	JSON_LITERAL,  /* a number, true, false or null */
	JSON_DONE      /* the value is complete; only blanks may follow */
};

struct json_scan {
	/* the caller's: */
	const char *text; /* the input; bytes before `at` were consumed */
	size_t len, at;
	bool last;          /* no more bytes will follow */
	unsigned max_depth; /* at most JSON_SCAN_DEPTH_MAX */
	bool one_line;      /* refuse line breaks between tokens */
	bool any_escape;    /* take \u0000 and single halves of surrogate pairs */

	/* of the last token: */
	const char *raw; /* JSON_PIECE: whole characters and escapes as they came; JSON_LITERAL */
	size_t raw_len;
	const char *fault; /* after -1: the error at `at` */

	/* the scanner's: */
	unsigned depth;
	uint64_t objects; /* a bit for each level: it is an object */
	uint8_t expects;
	bool in_key;
};

extern const char json_scan_too_deep[]; /* the fault of text that is nested too deep */

/* Returns an enum json_token, or -1. Never JSON_MORE when `last` is set. */
int json_scan(struct json_scan *s);
/* Returns the value of four hexadecimal digits, or -1. */
int json_scan_unit(const char *digits);
