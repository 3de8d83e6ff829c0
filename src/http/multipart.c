/*
 * A body is delimiters with parts in between:
 *
 *     --BOUNDARY CRLF head CRLF CRLF content CRLF --BOUNDARY CRLF ... CRLF --BOUNDARY-- [CRLF]
 *
 * The delimiter is looked for as CRLF "--" BOUNDARY. The very first has no CRLF of its own, and
 * that behind a head might be taken for one: there, a delimiter at once is refused.
 *
 * CR occurs in it only at the front, so a match that breaks off can begin again only at the byte
 * that broke it, and what was held back is known to be the delimiter's beginning: nothing is
 * buffered.
 *
 * Refused: boundaries of other than 1 to 70 allowed characters, bytes before the first delimiter or
 * after the last, anything but CRLF or "--" behind a delimiter, heads without a form-data
 * disposition and name, parameters twice, names that are not UTF-8, transfer encodings that change
 * the content, bare CR or LF and control bytes in heads, more parts than the caller takes.
 */
#include "http/multipart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "http/disposition.h"
#include "http/parser.h"

#define DELIMITER_MAX (4 + MULTIPART_BOUNDARY_MAX + 1)

enum state {
	STATE_FIRST,   /* within the first delimiter */
	STATE_CONTENT, /* within a part's content, or the delimiter behind it */
	STATE_BEHIND,  /* the two bytes behind a delimiter */
	STATE_HEAD,
	STATE_EPILOGUE /* the two bytes that may come behind everything */
};

struct multipart {
	const struct multipart_events *events;
	void *arg;
	size_t parts_left;
	enum state state;
	bool refused;
	char delimiter[DELIMITER_MAX];
	size_t delimiter_len;
	size_t matched; /* bytes of the delimiter, or of the expected text, that have arrived */
	size_t assumed; /* of those: an implied line end that belongs to the previous bytes */
	bool closing;   /* behind the delimiter came a "-" */
	bool closed;
	size_t head_len;
	char head[MULTIPART_HEAD_MAX];
};

struct step {
	size_t used;
	int result; /* of a callback, or negative */
};

static struct step multipart_take_content(
	struct multipart *m, const char *data, size_t len, struct error *e);
static struct step match_delimiter(
	struct multipart *m, const char *data, size_t len, struct error *e);
static struct step take_behind(struct multipart *m, const char *data, size_t len, struct error *e);
static struct step multipart_take_head(
	struct multipart *m, const char *data, size_t len, struct error *e);
static struct step take_epilogue(
	struct multipart *m, const char *data, size_t len, struct error *e);
static int end_part(struct multipart *m, struct error *e);
static bool ends_with_empty_line(const struct multipart *m);
static int begin_part(struct multipart *m, struct error *e);
static int multipart_take_header(
	char *line, struct disposition *disposition, const char **type, struct error *e);
static int check_encoding(const char *value, struct error *e);
static int multipart_set_malformed(struct error *e, const char *what);

int multipart_create(struct multipart **ret, const char *type, size_t parts_max,
	const struct multipart_events *events, void *arg, struct error *e)
{
	char boundary[MULTIPART_BOUNDARY_MAX + 1];
	int r = multipart_find_boundary(type, boundary, e);
	if (r < 0)
		return r;
	struct multipart *m = calloc(1, sizeof *m);
	if (!m)
		return error_set(e, ERROR_RESOURCE_EXHAUSTED, "out of memory");
	m->events = events;
	m->arg = arg;
	m->parts_left = parts_max;
	m->delimiter_len = 4 + strlen(boundary);
	snprintf(m->delimiter, sizeof m->delimiter, "\r\n--%s", boundary);
	m->matched = m->assumed = 2;
	*ret = m;
	return 0;
}

void multipart_destroy(struct multipart *m)
{
	free(m);
}

ptrdiff_t multipart_push(struct multipart *m, const char *data, size_t len, struct error *e)
{
	static struct step (*const take[])(
		struct multipart * m, const char *data, size_t len, struct error *e) = {
		[STATE_FIRST] = match_delimiter,
		[STATE_CONTENT] = multipart_take_content,
		[STATE_BEHIND] = take_behind,
		[STATE_HEAD] = multipart_take_head,
		[STATE_EPILOGUE] = take_epilogue,
	};
	size_t used = 0;
	if (m->refused)
		return multipart_set_malformed(e, "it has been refused before");
	while (used < len) {
		struct step step = take[m->state](m, data + used, len - used, e);
		used += step.used;
		m->refused = step.result < 0;
		if (m->refused)
			return step.result;
		if (step.result == MULTIPART_PAUSE)
			break;
	}
	return (ptrdiff_t)used;
}

int multipart_end(const struct multipart *m, struct error *e)
{
	bool half_a_line = m->state == STATE_EPILOGUE && m->matched == 1;
	if (!m->closed || half_a_line)
		return multipart_set_malformed(e, "it ends before its last delimiter");
	return 0;
}

/* ---- content ---- */

static struct step multipart_take_content(
	struct multipart *m, const char *data, size_t len, struct error *e)
{
	if (m->matched > 0)
		return match_delimiter(m, data, len, e);
	const char *cr = memchr(data, '\r', len);
	size_t plain = cr ? (size_t)(cr - data) : len;
	if (plain > 0)
		return (struct step){plain, m->events->data(m->arg, data, plain, e)};
	m->matched = 1;
	return (struct step){1, MULTIPART_GO_ON};
}

/* Goes on with a delimiter that has begun. */
static struct step match_delimiter(
	struct multipart *m, const char *data, size_t len, struct error *e)
{
	size_t used = 0;
	while (used < len && m->matched < m->delimiter_len &&
		data[used] == m->delimiter[m->matched]) {
		used++;
		m->matched++;
	}
	if (m->matched == m->delimiter_len)
		return (struct step){used, end_part(m, e)};
	if (used == len)
		return (struct step){used, MULTIPART_GO_ON};
	if (m->state == STATE_FIRST)
		return (struct step){
			used, multipart_set_malformed(e, "it does not begin with its boundary")};
	/* The assumed delimiter was content. */
	const char *held = m->delimiter + m->assumed;
	size_t held_len = m->matched - m->assumed;
	m->matched = m->assumed = 0;
	int r = held_len > 0 ? m->events->data(m->arg, held, held_len, e) : MULTIPART_GO_ON;
	return (struct step){used, r};
}

static int end_part(struct multipart *m, struct error *e)
{
	bool first = m->state == STATE_FIRST;
	if (!first && m->assumed > 0)
		return multipart_set_malformed(e, "a delimiter comes right behind a part's head");
	m->state = STATE_BEHIND;
	m->matched = m->assumed = 0;
	return first ? MULTIPART_GO_ON : m->events->end(m->arg, e);
}

/* ---- between the parts ---- */

static struct step take_behind(struct multipart *m, const char *data, size_t len, struct error *e)
{
	(void)len;
	char wanted = m->matched == 0 ? (data[0] == '-' ? '-' : '\r') : m->closing ? '-' : '\n';
	if (data[0] != wanted)
		return (struct step){
			0, multipart_set_malformed(e, "a delimiter's line goes on behind it")};
	m->closing = wanted == '-';
	if (++m->matched == 2) {
		m->matched = 0;
		m->closed = m->closing;
		m->state = m->closed ? STATE_EPILOGUE : STATE_HEAD;
		m->head_len = 0;
	}
	return (struct step){1, MULTIPART_GO_ON};
}

static struct step take_epilogue(struct multipart *m, const char *data, size_t len, struct error *e)
{
	(void)len;
	if (m->matched == 2 || data[0] != "\r\n"[m->matched])
		return (struct step){
			0, multipart_set_malformed(e, "something comes behind its last delimiter")};
	m->matched++;
	return (struct step){1, MULTIPART_GO_ON};
}

/* ---- heads ---- */

static struct step multipart_take_head(
	struct multipart *m, const char *data, size_t len, struct error *e)
{
	const char *lf = memchr(data, '\n', len);
	size_t n = lf ? (size_t)(lf - data) + 1 : len;
	if (n > sizeof m->head - m->head_len)
		return (struct step){
			0, multipart_set_malformed(e, "a part's head is longer than 8,192 bytes")};
	memcpy(m->head + m->head_len, data, n);
	m->head_len += n;
	if (!lf || !ends_with_empty_line(m))
		return (struct step){n, MULTIPART_GO_ON};
	m->state = STATE_CONTENT;
	m->matched = m->assumed = 2;
	return (struct step){n, begin_part(m, e)};
}

static bool ends_with_empty_line(const struct multipart *m)
{
	if (m->head_len == 2)
		return memcmp(m->head, "\r\n", 2) == 0;
	return m->head_len > 4 && memcmp(m->head + m->head_len - 4, "\r\n\r\n", 4) == 0;
}

static int begin_part(struct multipart *m, struct error *e)
{
	struct disposition disposition = {0};
	const char *type = NULL;
	size_t count = 0;
	if (m->parts_left == 0)
		return error_set(e, ERROR_INVALID_REQUEST, "the form has too many parts");
	m->parts_left--;
	char *end = m->head + m->head_len - 2;
	for (char *line = m->head, *next; line < end; line = next) {
		char *eol = memchr(line, '\n', (size_t)(end - line));
		next = eol + 1;
		if (eol == line || eol[-1] != '\r')
			return multipart_set_malformed(
				e, "a line of a part's head does not end with CR LF");
		eol[-1] = '\0';
		if (++count > MULTIPART_HEADERS_MAX)
			return multipart_set_malformed(e, "a part has more than 16 headers");
		if (strlen(line) != (size_t)(eol - 1 - line))
			return multipart_set_malformed(
				e, "a part's head holds a control character");
		int r = multipart_take_header(line, &disposition, &type, e);
		if (r < 0)
			return r;
	}
	if (!disposition.name)
		return multipart_set_malformed(e, "a part has no name");
	const struct multipart_part part = {disposition.name, disposition.filename, type};
	return m->events->begin(m->arg, &part, e);
}

static int multipart_take_header(
	char *line, struct disposition *disposition, const char **type, struct error *e)
{
	char *value = strchr(line, ':');
	for (const char *p = line; *p; p++)
		if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f)
			return multipart_set_malformed(
				e, "a part's head holds a control character");
	if (!value || !http_is_token(line, (size_t)(value - line)))
		return multipart_set_malformed(e, "a line of a part's head is no header");
	*value++ = '\0';
	value += strspn(value, " \t");
	if (strcasecmp(line, "Content-Disposition") == 0)
		return disposition->name ? multipart_set_malformed(e, "a part has two dispositions")
					 : disposition_parse(value, disposition, e);
	if (strcasecmp(line, "Content-Transfer-Encoding") == 0)
		return check_encoding(value, e);
	if (strcasecmp(line, "Content-Type") == 0)
		*type = value;
	return 0;
}

static int check_encoding(const char *value, struct error *e)
{
	static const char *const harmless[] = {"binary", "8bit", "7bit"};
	for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
		if (strcasecmp(value, harmless[i]) == 0)
			return 0;
	return multipart_set_malformed(e, "a part has a transfer encoding");
}

static int multipart_set_malformed(struct error *e, const char *what)
{
	return error_set(e, ERROR_INVALID_REQUEST, "the form is malformed: %s", what);
}
