/*
 * Messages of interpreters. Between them may stand anything, because user code can write there,
 * too: a message begins with a line of its own and the interpreter's key, and what does not is
 * passed over.
 *
 *     \n KEY SPACE TYPE SPACE LENGTH... \n   and the fields, one behind the other
 *
 * A message that there is no room for now is passed over as a whole; no interpreter of ours sends
 * one larger than CODE_MESSAGE_MAX.
 */
#include <stdlib.h>
#include <string.h>

#include "box/code/code_core.h"

#define FRAMED_KEY_LEN (CODE_KEY_LEN + 2)

static char framed_key_at(const char *key, size_t index)
{
	if (index == 0)
		return '\n';
	return index <= CODE_KEY_LEN ? key[index - 1] : ' ';
}

/* Neither key nor space contains a newline, so after a mismatch the search begins anew. */
static size_t code_message_search(
	struct code_message *m, const char *key, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (data[i] == framed_key_at(key, m->matched))
			m->matched++;
		else
			m->matched = data[i] == '\n';
		if (m->matched < FRAMED_KEY_LEN)
			continue;
		m->matched = 0;
		m->head_len = 0;
		m->state = CODE_MESSAGE_HEAD;
		return i + 1;
	}
	return len;
}

/* "type 1 22 333": the type, and how long each field is. */
static bool parse_head(struct code_message *m)
{
	char *at = m->head, *end;
	size_t type_len = strcspn(at, " ");
	if (type_len == 0 || type_len >= sizeof m->type)
		return false;
	memcpy(m->type, at, type_len);
	m->type[type_len] = '\0';
	at += type_len;
	m->field_count = m->total = 0;
	while (*at == ' ') {
		if (at[1] < '0' || at[1] > '9' || m->field_count == CODE_FIELDS_MAX)
			return false;
		unsigned long long len = strtoull(at + 1, &end, 10);
		if (end - at > 12)
			return false;
		m->fields[m->field_count++] = (struct code_field){NULL, (size_t)len};
		m->total += (size_t)len;
		at = end;
	}
	return *at == '\0';
}

static void begin_body(struct code_message *m)
{
	bool fits = *m->charged + m->total <= CODE_BUFFERS_MAX;
	m->state = m->total == 0 ? CODE_MESSAGE_WHOLE : CODE_MESSAGE_BODY;
	if (m->total > CODE_MESSAGE_MAX) {
		m->state = CODE_MESSAGE_NONSENSE;
		return;
	}
	if (fits && buf_reserve(&m->body, m->total)) {
		*m->charged += m->total;
		return;
	}
	m->skipped = 0;
	m->state = CODE_MESSAGE_SKIP;
}

static size_t code_message_take_head(struct code_message *m, const char *data, size_t len)
{
	const char *end = memchr(data, '\n', len);
	size_t part = end ? (size_t)(end - data) : len;
	if (m->head_len + part >= sizeof m->head) {
		m->state = CODE_MESSAGE_SEARCH;
		return 0;
	}
	memcpy(m->head + m->head_len, data, part);
	m->head_len += part;
	if (!end)
		return len;
	m->head[m->head_len] = '\0';
	if (strlen(m->head) == m->head_len && parse_head(m)) {
		begin_body(m);
		return part + 1;
	}
	m->state = CODE_MESSAGE_SEARCH;
	return part; /* the newline may begin the next one */
}

static void finish_body(struct code_message *m)
{
	const char *at = m->body.data;
	for (size_t i = 0; i < m->field_count; i++) {
		m->fields[i].data = at;
		at += m->fields[i].len;
	}
	m->state = CODE_MESSAGE_WHOLE;
}

static size_t take_body(struct code_message *m, const char *data, size_t len)
{
	size_t left = m->total - m->body.len;
	size_t part = len < left ? len : left;
	buf_append(&m->body, data, part);
	if (part == left)
		finish_body(m);
	return part;
}

static size_t skip_body(struct code_message *m, size_t len, bool *left_out)
{
	size_t left = m->total - m->skipped;
	size_t part = len < left ? len : left;
	m->skipped += part;
	if (part == left) {
		m->state = CODE_MESSAGE_SEARCH;
		*left_out = true;
	}
	return part;
}

void code_message_reset(struct code_message *m)
{
	if (m->state == CODE_MESSAGE_BODY || m->state == CODE_MESSAGE_WHOLE)
		*m->charged -= m->total;
	buf_finish(&m->body);
	m->state = CODE_MESSAGE_SEARCH;
	m->matched = 0;
}

size_t code_message_feed(
	struct code_message *m, const char *key, const char *data, size_t len, bool *left_out)
{
	size_t used = 0;
	if (m->state == CODE_MESSAGE_WHOLE)
		code_message_reset(m);
	while (used < len && m->state != CODE_MESSAGE_WHOLE && !*left_out) {
		const char *at = data + used;
		size_t rest = len - used;
		switch (m->state) {
		case CODE_MESSAGE_SEARCH:
			used += code_message_search(m, key, at, rest);
			break;
		case CODE_MESSAGE_HEAD:
			used += code_message_take_head(m, at, rest);
			break;
		case CODE_MESSAGE_BODY:
			used += take_body(m, at, rest);
			break;
		case CODE_MESSAGE_SKIP:
			used += skip_body(m, rest, left_out);
			break;
		default:
			used = len;
			break;
		}
	}
	return used;
}
