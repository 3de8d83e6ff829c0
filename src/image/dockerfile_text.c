#include "image/dockerfile_text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define LINES_MAX 1000
#define WORD_MAX  (256u * 1024)

int dockerfile_fail(struct dockerfile_error *e, int line, const char *format, ...)
{
	va_list args;
	e->line = line;
	va_start(args, format);
	vsnprintf(e->message, sizeof e->message, format, args);
	va_end(args);
	return -1;
}

char *dockerfile_copy(struct scratch *memory, const char *text, size_t len)
{
	char *copy = scratch_alloc(memory, len + 1);
	memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

/* ---- lines ---- */

static bool dockerfile_text_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* Without the spaces at its ends. */
static const char *dockerfile_text_trim(const char *text, size_t *len)
{
	while (*len > 0 && dockerfile_text_is_space(text[0])) {
		text++;
		--*len;
	}
	while (*len > 0 && dockerfile_text_is_space(text[*len - 1]))
		--*len;
	return text;
}

/* "# escape=`", only at the very top. */
static void read_directive(const char *line, size_t len, char *escape)
{
	char text[64];
	char value;
	if (len >= sizeof text)
		return;
	memcpy(text, line, len);
	text[len] = '\0';
	if (sscanf(text, "# %*[eE]%*[sS]%*[cC]%*[aA]%*[pP]%*[eE] = %c", &value) == 1 &&
		(value == '`' || value == '\\'))
		*escape = value;
}

struct splitter {
	const char *at, *end;
	int number; /* of the line that comes next */
	char escape;
	bool directives; /* nothing but such comments so far */
	struct buf line; /* an instruction, put together */
	int first;       /* where it began; 0: nowhere yet */
};

/* The next line of the file, without its end. */
static const char *next_line(struct splitter *s, size_t *len)
{
	const char *line = s->at;
	const char *end = memchr(line, '\n', (size_t)(s->end - line));
	*len = (size_t)((end ? end : s->end) - line);
	s->at = end ? end + 1 : s->end;
	s->number++;
	return line;
}

/* True when it goes on in the next line. */
static bool dockerfile_text_take_line(struct splitter *s, const char *line, size_t len)
{
	size_t trimmed = len;
	const char *text = dockerfile_text_trim(line, &trimmed);
	if (trimmed == 0 && !s->first)
		return false;
	if (trimmed == 0 || text[0] == '#') {
		if (s->directives && trimmed > 0)
			read_directive(text, trimmed, &s->escape);
		return s->first != 0;
	}
	s->directives = false;
	if (!s->first)
		s->first = s->number;
	bool goes_on = text[trimmed - 1] == s->escape;
	/* The indentation of a line that is gone on with belongs to it: shells see it. */
	size_t kept = (size_t)(text + trimmed - line) - goes_on;
	buf_append(&s->line, s->line.len ? line : text, s->line.len ? kept : trimmed - goes_on);
	return goes_on;
}

static int end_instruction(struct splitter *s, struct scratch *memory, struct dockerfile_line *ret,
	struct dockerfile_error *e)
{
	size_t len = s->line.len;
	const char *text = dockerfile_text_trim(s->line.data, &len);
	size_t name = 0;
	while (name < len && !dockerfile_text_is_space(text[name]))
		name++;
	if (memchr(text, '\0', len))
		return dockerfile_fail(e, s->first, "there is a NUL byte");
	char *upper = dockerfile_copy(memory, text, name);
	for (char *c = upper; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	size_t rest_len = len - name;
	const char *rest = dockerfile_text_trim(text + name, &rest_len);
	*ret = (struct dockerfile_line){s->first, upper, dockerfile_copy(memory, rest, rest_len)};
	buf_finish(&s->line);
	s->first = 0;
	return 0;
}

int dockerfile_split(const char *text, size_t len, struct scratch *memory,
	struct dockerfile_line **ret, size_t *count, char *escape, struct dockerfile_error *e)
{
	struct splitter s = {.at = text, .end = text + len, .escape = '\\', .directives = true};
	struct dockerfile_line *lines = scratch_alloc(memory, LINES_MAX * sizeof *lines);
	size_t n = 0;
	int r = 0;
	while (s.at < s.end && r == 0) {
		size_t line_len;
		const char *line = next_line(&s, &line_len);
		if (dockerfile_text_take_line(&s, line, line_len) && s.at < s.end)
			continue;
		/* A line of only an escape character is empty. */
		if (!s.first || s.line.len == 0) {
			s.first = 0;
			continue;
		}
		if (n == LINES_MAX)
			r = dockerfile_fail(
				e, s.first, "there are more than %d instructions", LINES_MAX);
		else
			r = end_instruction(&s, memory, &lines[n++], e);
	}
	buf_finish(&s.line);
	*ret = lines;
	*count = n;
	*escape = s.escape;
	return r;
}

/* ---- variables ---- */

static const char *dockerfile_text_own(
	const struct dockerfile_scope *s, const char *name, size_t name_len)
{
	for (size_t i = 0; i < s->count; i++)
		if (strncmp(s->entries[i], name, name_len) == 0 && s->entries[i][name_len] == '=')
			return s->entries[i] + name_len + 1;
	return NULL;
}

bool dockerfile_has(const struct dockerfile_scope *s, const char *name, size_t name_len)
{
	return dockerfile_text_own(s, name, name_len) != NULL;
}

const char *dockerfile_get(const struct dockerfile_scope *s, const char *name, size_t name_len)
{
	const char *value = NULL;
	for (; s && !value; s = s->behind)
		value = dockerfile_text_own(s, name, name_len);
	return value;
}

void dockerfile_set(
	struct dockerfile_scope *s, const char *name, size_t name_len, const char *value)
{
	size_t value_len = strlen(value);
	char *entry = scratch_alloc(s->memory, name_len + value_len + 2);
	memcpy(entry, name, name_len);
	entry[name_len] = '=';
	memcpy(entry + name_len + 1, value, value_len + 1);
	for (size_t i = 0; i < s->count; i++)
		if (strncmp(s->entries[i], entry, name_len + 1) == 0) {
			s->entries[i] = entry;
			return;
		}
	if (s->count + 1 >= s->capacity) {
		size_t capacity = s->capacity ? 2 * s->capacity : 64;
		const char **grown = scratch_alloc(s->memory, capacity * sizeof *grown);
		if (s->count)
			memcpy(grown, s->entries, s->count * sizeof *grown);
		s->entries = grown;
		s->capacity = capacity;
	}
	s->entries[s->count++] = entry;
	s->entries[s->count] = NULL;
}

struct expansion {
	const struct dockerfile_line *line;
	const struct dockerfile_scope *scope;
	char escape;
	unsigned depth;
	struct dockerfile_error *e;
};

static int expand_into(struct expansion *x, const char *text, size_t len, struct buf *out);

static size_t name_length(const char *text, size_t len)
{
	size_t n = 0;
	while (n < len && (isalnum((unsigned char)text[n]) || text[n] == '_'))
		n++;
	return n > 0 && isdigit((unsigned char)text[0]) ? 0 : n;
}

/* The length up to the brace that closes, or 0. */
static size_t braced_length(const char *text, size_t len)
{
	unsigned depth = 0;
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '{')
			depth++;
		else if (text[i] == '}' && --depth == 0)
			return i + 1;
	}
	return 0;
}

/* "{NAME}", "{NAME:-word}", "{NAME:+word}", without the dollar; returns how much was taken. */
static int expand_braced(
	struct expansion *x, const char *text, size_t len, size_t *taken, struct buf *out)
{
	size_t whole = braced_length(text, len);
	size_t name = whole ? name_length(text + 1, whole - 2) : 0;
	const char *rest = text + 1 + name;
	size_t rest_len = whole ? whole - 2 - name : 0;
	if (name == 0 || (rest_len > 0 && (rest_len < 2 || rest[0] != ':' ||
						  (rest[1] != '-' && rest[1] != '+'))))
		return dockerfile_fail(x->e, x->line->number,
			"only ${NAME}, ${NAME:-word} and ${NAME:+word} are understood");
	const char *value = dockerfile_get(x->scope, text + 1, name);
	bool has = value && value[0];
	*taken = whole;
	if (rest_len == 0 || (has && rest[1] == '-')) {
		buf_append_str(out, value ? value : "");
		return 0;
	}
	if (has != (rest[1] == '+'))
		return 0;
	return expand_into(x, rest + 2, rest_len - 2, out);
}

static int expand_variable(
	struct expansion *x, const char *text, size_t len, size_t *taken, struct buf *out)
{
	if (len > 0 && text[0] == '{')
		return expand_braced(x, text, len, taken, out);
	size_t name = name_length(text, len);
	*taken = name;
	if (name == 0) {
		buf_append_char(out, '$');
		return 0;
	}
	const char *value = dockerfile_get(x->scope, text, name);
	buf_append_str(out, value ? value : "");
	return 0;
}

/* Quotes are taken away; within single ones nothing is special. */
static int expand_into(struct expansion *x, const char *text, size_t len, struct buf *out)
{
	char quote = 0;
	if (++x->depth > 16)
		return dockerfile_fail(x->e, x->line->number, "variables are nested too deeply");
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		size_t taken = 0;
		if (c == x->escape && quote != '\'' && i + 1 < len) {
			/* Within double quotes only what is special there loses the escape. */
			char next = text[++i];
			if (quote && next != '"' && next != '$' && next != x->escape)
				buf_append_char(out, c);
			buf_append_char(out, next);
		} else if ((c == '\'' || c == '"') && (!quote || quote == c)) {
			quote = quote ? 0 : c;
		} else if (c == '$' && quote != '\'') {
			if (expand_variable(x, text + i + 1, len - i - 1, &taken, out) < 0)
				return -1;
			i += taken;
		} else {
			buf_append_char(out, c);
		}
		if (out->len > WORD_MAX)
			return dockerfile_fail(x->e, x->line->number, "a word is too long");
	}
	x->depth--;
	if (quote)
		return dockerfile_fail(x->e, x->line->number, "a quote is not closed");
	return 0;
}

static int expand_word(const struct dockerfile_line *line, const char *text, size_t len,
	const struct dockerfile_scope *scope, char escape, const char **ret,
	struct dockerfile_error *e)
{
	struct expansion x = {line, scope, escape, 0, e};
	autobuf out = {0};
	if (expand_into(&x, text, len, &out) < 0)
		return -1;
	*ret = dockerfile_copy(scope->memory, out.data ? out.data : "", out.len);
	return 0;
}

int dockerfile_expand(const struct dockerfile_line *line, const char *text,
	const struct dockerfile_scope *scope, char escape, const char **ret,
	struct dockerfile_error *e)
{
	return expand_word(line, text, strlen(text), scope, escape, ret, e);
}

/* Up to the next space that no quote, escape or brace protects. */
static size_t word_length(const char *text, char escape)
{
	char quote = 0;
	size_t i = 0;
	for (; text[i]; i++) {
		if (text[i] == escape && quote != '\'' && text[i + 1])
			i++;
		else if ((text[i] == '\'' || text[i] == '"') && (!quote || quote == text[i]))
			quote = quote ? 0 : text[i];
		else if (!quote && dockerfile_text_is_space(text[i]))
			break;
	}
	return i;
}

int dockerfile_words(const struct dockerfile_line *line, const char *text,
	const struct dockerfile_scope *scope, char escape, const char *const **ret,
	struct dockerfile_error *e)
{
	const char **words = scratch_alloc(scope->memory, (strlen(text) / 2 + 2) * sizeof *words);
	size_t count = 0;
	while (*text) {
		size_t len = word_length(text, escape);
		if (len > 0 && expand_word(line, text, len, scope, escape, &words[count++], e) < 0)
			return -1;
		text += len;
		while (dockerfile_text_is_space(*text))
			text++;
	}
	*ret = words;
	return 0;
}

/* ---- lists as JSON writes them ---- */

static void append_utf8(struct buf *out, unsigned code)
{
	if (code < 0x80) {
		buf_append_char(out, (char)code);
	} else if (code < 0x800) {
		buf_append_char(out, (char)(0xc0 | code >> 6));
		buf_append_char(out, (char)(0x80 | (code & 0x3f)));
	} else {
		buf_append_char(out, (char)(0xe0 | code >> 12));
		buf_append_char(out, (char)(0x80 | (code >> 6 & 0x3f)));
		buf_append_char(out, (char)(0x80 | (code & 0x3f)));
	}
}

/* Reads what follows a backslash and advances *text. Returns false for an unknown escape. */
static bool read_escape(const char **text, struct buf *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found = **text ? strchr(from, **text) : NULL;
	unsigned code = 0;
	int used = 0;
	if (found) {
		buf_append_char(out, to[found - from]);
		++*text;
		return true;
	}
	if (**text != 'u' || sscanf(*text + 1, "%4x%n", &code, &used) != 1 || used != 4 ||
		code == 0)
		return false;
	append_utf8(out, code);
	*text += 5;
	return true;
}

/* Reads a string behind its opening quote and advances *text past the closing one. */
static bool read_string(const char **text, struct buf *out)
{
	while (**text && **text != '"') {
		char c = *(*text)++;
		if (c != '\\')
			buf_append_char(out, c);
		else if (!read_escape(text, out))
			return false;
	}
	return *(*text)++ == '"';
}

static const char *skip_space(const char *text)
{
	while (dockerfile_text_is_space(*text))
		text++;
	return text;
}

const char *const *dockerfile_list(const char *text, struct scratch *memory)
{
	size_t count = 0;
	text = skip_space(text);
	if (*text++ != '[')
		return NULL;
	const char **items = scratch_alloc(memory, (strlen(text) / 3 + 2) * sizeof *items);
	text = skip_space(text);
	while (*text == '"') {
		autobuf item = {0};
		text++;
		/* Anything but a JSON list is a shell line: [ -f x ] is one. */
		if (!read_string(&text, &item))
			return NULL;
		items[count++] = dockerfile_copy(memory, item.data ? item.data : "", item.len);
		text = skip_space(text);
		if (*text != ',')
			break;
		text = skip_space(text + 1);
		if (*text != '"')
			return NULL;
	}
	if (*text != ']' || *skip_space(text + 1))
		return NULL;
	return items;
}
