#include "json/scan.h"

#include <string.h>

#include "base/utf8.h"

const char json_scan_too_deep[] = "nesting that is too deep";

/* The tokens that the grammar allows next. */
enum {
	EXPECT_VALUE,
	EXPECT_FIRST_KEY,   /* or the end of the object */
	EXPECT_FIRST_VALUE, /* or the end of the array */
	EXPECT_KEY,
	EXPECT_COLON,
	EXPECT_COMMA, /* or the end */
	EXPECT_STRING_REST,
	EXPECT_NOTHING
};

static int scan_fault(struct json_scan *s, const char *what)
{
	s->fault = what;
	return -1;
}

static int scan_more(struct json_scan *s, const char *what)
{
	return s->last ? scan_fault(s, what) : JSON_MORE;
}

static bool scan_is_in_object(const struct json_scan *s)
{
	return s->depth > 0 && (s->objects >> (s->depth - 1) & 1);
}

static void scan_value_ended(struct json_scan *s)
{
	s->expects = s->depth == 0 ? EXPECT_NOTHING : EXPECT_COMMA;
}

/* ---- strings ---- */

static int scan_hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int json_scan_unit(const char *digits)
{
	int unit = 0;
	for (int i = 0; i < 4; i++) {
		int digit = scan_hex_value(digits[i]);
		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

/* Checks "\uXXXX" and the other half of a pair. Returns its length, 0 if more is needed, or -1. */
static int scan_unicode(struct json_scan *s, const char *at, size_t left)
{
	if (left < 6)
		return 0;
	int unit = json_scan_unit(at + 2);
	if (unit < 0)
		return scan_fault(s, "an invalid escape");
	if (s->any_escape)
		return 6;
	if (unit == 0)
		return scan_fault(s, "NUL in a string");
	if (unit < 0xd800 || unit > 0xdfff)
		return 6;
	if (unit > 0xdbff)
		return scan_fault(s, "half of a surrogate pair");
	if (left < 12)
		return 0;
	int low = at[6] == '\\' && at[7] == 'u' ? json_scan_unit(at + 8) : -1;
	return low >= 0xdc00 && low <= 0xdfff ? 12 : scan_fault(s, "half of a surrogate pair");
}

/* Checks one character that is not plain ASCII. Returns as scan_unicode does. */
static int scan_character(struct json_scan *s, const char *at, size_t left)
{
	if (*at == '\\') {
		if (left < 2)
			return 0;
		if (at[1] == 'u')
			return scan_unicode(s, at, left);
		return at[1] && strchr("\"\\/bfnrt", at[1]) ? 2
							    : scan_fault(s, "an invalid escape");
	}
	if ((unsigned char)*at < ' ')
		return scan_fault(s, "a control character in a string");
	size_t n = utf8_char_len(at, left);
	if (n == 0 && left < 4 && utf8_incomplete_tail(at, left) == left && !s->last)
		return 0;
	return n ? (int)n : scan_fault(s, "text that is not UTF-8");
}

/* Moves `at` to the string's closing quote, or as far as whole characters are there. */
static int scan_characters(struct json_scan *s)
{
	while (s->at < s->len) {
		const char *at = s->text + s->at;
		unsigned char c = (unsigned char)*at;
		if (c == '"')
			break;
		if (c >= ' ' && c < 0x80 && c != '\\') {
			s->at++;
			continue;
		}
		int n = scan_character(s, at, s->len - s->at);
		if (n <= 0)
			return n;
		s->at += (size_t)n;
	}
	return 0;
}

static int scan_string(struct json_scan *s)
{
	size_t from = s->at;
	if (scan_characters(s) < 0)
		return -1;
	if (s->at > from) {
		s->raw = s->text + from;
		s->raw_len = s->at - from;
		return JSON_PIECE;
	}
	if (s->at == s->len || s->text[s->at] != '"')
		return scan_more(s, s->at == s->len ? "a string without end" : "an invalid escape");
	s->at++;
	if (s->in_key)
		s->expects = EXPECT_COLON;
	else
		scan_value_ended(s);
	return s->in_key ? JSON_KEY : JSON_TEXT_END;
}

static int scan_begin_string(struct json_scan *s, bool is_key)
{
	if (s->text[s->at] != '"')
		return scan_fault(s, "unexpected text");
	s->at++;
	s->in_key = is_key;
	s->expects = EXPECT_STRING_REST;
	return scan_string(s);
}

/* ---- other values ---- */

static size_t count_digits(const char *at, const char *end)
{
	const char *begin = at;
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return (size_t)(at - begin);
}

static bool is_number(const char *at, const char *end)
{
	at += at < end && *at == '-';
	size_t digits = count_digits(at, end);
	if (digits == 0 || (digits > 1 && *at == '0'))
		return false;
	at += digits;
	if (at < end && *at == '.') {
		digits = count_digits(++at, end);
		if (digits == 0)
			return false;
		at += digits;
	}
	if (at < end && (*at == 'e' || *at == 'E')) {
		at++;
		at += at < end && (*at == '+' || *at == '-');
		digits = count_digits(at, end);
		if (digits == 0)
			return false;
		at += digits;
	}
	return at == end;
}

static bool scan_is_word(const char *at, size_t len)
{
	static const char *const words[] = {"true", "false", "null"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i]) == len && memcmp(words[i], at, len) == 0)
			return true;
	return false;
}

static bool is_literal_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' ||
	       c == '.' || c == 'E';
}

static int scan_literal(struct json_scan *s)
{
	const char *at = s->text + s->at;
	size_t left = s->len - s->at, len = 0;
	while (len < left && is_literal_char(at[len]))
		len++;
	if (len > JSON_SCAN_LITERAL_MAX)
		return scan_fault(s, "a number that is too long");
	if (len == left && !s->last)
		return JSON_MORE;
	bool numeric = len > 0 && (at[0] == '-' || (at[0] >= '0' && at[0] <= '9'));
	if (numeric ? !is_number(at, at + len) : !scan_is_word(at, len))
		return scan_fault(s, numeric ? "a malformed number" : "unexpected text");
	s->raw = at;
	s->raw_len = len;
	s->at += len;
	scan_value_ended(s);
	return JSON_LITERAL;
}

static int scan_begin(struct json_scan *s, bool object)
{
	if (s->depth == s->max_depth)
		return scan_fault(s, json_scan_too_deep);
	uint64_t bit = UINT64_C(1) << s->depth++;
	s->objects = object ? s->objects | bit : s->objects & ~bit;
	s->expects = object ? EXPECT_FIRST_KEY : EXPECT_FIRST_VALUE;
	s->at++;
	return object ? JSON_BEGIN_OBJECT : JSON_BEGIN_ARRAY;
}

static int scan_end(struct json_scan *s)
{
	int token = scan_is_in_object(s) ? JSON_END_OBJECT : JSON_END_ARRAY;
	s->at++;
	s->depth--;
	scan_value_ended(s);
	return token;
}

static int scan_value(struct json_scan *s, char c)
{
	if (c == '{' || c == '[')
		return scan_begin(s, c == '{');
	return c == '"' ? scan_begin_string(s, false) : scan_literal(s);
}

/* ---- the steps ---- */

/* A comma or colon is no token: the scan goes on. */
#define SCAN_GO_ON (-2)

static int scan_mark(struct json_scan *s, bool is_right, int expects)
{
	if (!is_right)
		return scan_fault(s, "unexpected text");
	s->at++;
	s->expects = (uint8_t)expects;
	return SCAN_GO_ON;
}

static int scan_token(struct json_scan *s, char c)
{
	char close = scan_is_in_object(s) ? '}' : ']';
	switch (s->expects) {
	case EXPECT_FIRST_KEY:
		return c == close ? scan_end(s) : scan_begin_string(s, true);
	case EXPECT_FIRST_VALUE:
		return c == close ? scan_end(s) : scan_value(s, c);
	case EXPECT_KEY:
		return scan_begin_string(s, true);
	case EXPECT_VALUE:
		return scan_value(s, c);
	case EXPECT_COLON:
		return scan_mark(s, c == ':', EXPECT_VALUE);
	case EXPECT_COMMA:
		if (c == close)
			return scan_end(s);
		return scan_mark(s, c == ',', scan_is_in_object(s) ? EXPECT_KEY : EXPECT_VALUE);
	default:
		return scan_fault(s, "unexpected text");
	}
}

static void scan_blanks(struct json_scan *s)
{
	while (s->at < s->len) {
		char c = s->text[s->at];
		if (c != ' ' && c != '\t' && (s->one_line || (c != '\n' && c != '\r')))
			break;
		s->at++;
	}
}

int json_scan(struct json_scan *s)
{
	int token;
	if (s->expects == EXPECT_STRING_REST)
		return scan_string(s);
	do {
		scan_blanks(s);
		if (s->at == s->len)
			return s->expects == EXPECT_NOTHING ? JSON_DONE
							    : scan_more(s, "unexpected end");
		token = scan_token(s, s->text[s->at]);
	} while (token == SCAN_GO_ON);
	return token;
}
