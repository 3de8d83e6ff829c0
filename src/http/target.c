/*
 * Decoding of request targets. The path is split on "/" first and each segment decoded afterwards,
 * once, so that a decoded byte can never move a segment's border.
 *
 * Refused with 400, unless a route takes the rest of the target as it is: invalid percent escapes,
 * %00, %2F, "." and ".." plain or encoded, empty segments other than the last (which is how "/a/"
 * differs from "/a").
 */
#include "http/target.h"

#include <string.h>

#include "http/parser.h"

static int split_path(char *path, struct http_target *target, struct error *e);
static int split_query(char *query, struct http_target *target, struct error *e);
static int http_target_split_pair(char *text, struct http_pair *pair, struct error *e);
static int check_segment(const char *segment, bool last, struct error *e);
static int http_target_decode(char *text, bool plus_is_space, struct error *e);

int http_split_target(char *text, struct http_target *target, struct error *e)
{
	char *query = strchr(text, '?');
	if (query)
		*query++ = '\0';
	target->segment_count = 0;
	target->pair_count = 0;
	int r = split_path(text, target, e);
	if (r == 0 && query)
		r = split_query(query, target, e);
	target->complete = r == 0;
	return r;
}

static int split_path(char *path, struct http_target *target, struct error *e)
{
	char *rest = path + 1;
	while (rest) {
		char *segment = strsep(&rest, "/");
		target->segments[target->segment_count] = segment;
		if (target->segment_count == HTTP_SEGMENTS_MAX)
			return error_set(e, ERROR_INVALID_REQUEST,
				"the path has more than %d segments", HTTP_SEGMENTS_MAX);
		int r = http_target_decode(segment, false, e);
		if (r < 0)
			return r;
		r = check_segment(segment, rest == NULL, e);
		if (r < 0)
			return r;
		target->segment_count++;
	}
	target->segments[target->segment_count] = NULL;
	return 0;
}

static int check_segment(const char *segment, bool last, struct error *e)
{
	bool empty = segment[0] == '\0' && !last;
	bool dots = strcmp(segment, ".") == 0 || strcmp(segment, "..") == 0;
	if (empty || dots || strchr(segment, '/'))
		return error_set(e, ERROR_INVALID_REQUEST,
			"the path holds an empty segment, \".\", \"..\" or an encoded slash");
	return 0;
}

static int split_query(char *query, struct http_target *target, struct error *e)
{
	while (query) {
		char *text = strsep(&query, "&");
		if (!*text)
			continue;
		if (target->pair_count == HTTP_QUERY_MAX)
			return error_set(e, ERROR_INVALID_REQUEST,
				"the query has more than %d parameters", HTTP_QUERY_MAX);
		int r = http_target_split_pair(text, &target->pairs[target->pair_count++], e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int http_target_split_pair(char *text, struct http_pair *pair, struct error *e)
{
	char *value = text + strcspn(text, "=");
	if (*value)
		*value++ = '\0';
	*pair = (struct http_pair){text, value};
	int r = http_target_decode(text, true, e);
	return r < 0 ? r : http_target_decode(value, true, e);
}

static int http_target_decode(char *text, bool plus_is_space, struct error *e)
{
	char *out = text;
	for (const char *in = text; *in; in++) {
		if (*in == '%') {
			int high = http_hex_digit(in[1]);
			int low = high < 0 ? -1 : http_hex_digit(in[2]);
			if (low < 0 || (high == 0 && low == 0))
				return error_set(e, ERROR_INVALID_REQUEST,
					"the request target holds an invalid percent escape");
			*out++ = (char)(high * 16 + low);
			in += 2;
		} else {
			*out++ = plus_is_space && *in == '+' ? ' ' : *in;
		}
	}
	*out = '\0';
	return 0;
}
