#include "egress/dns_message.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define HEAD_SIZE    12
#define CLASS_IN     1
#define POINTERS_MAX 64
#define RECORDS_MAX  512
#define RECORD_FIXED 10 /* type, class, time to live, length */

#define FLAG_ANSWER    0x8000u
#define FLAG_TRUNCATED 0x0200u
#define FLAG_RECURSE   0x0100u /* desired */
#define FLAG_RECURSES  0x0080u /* available */
#define MASK_OPERATION 0x7800u
#define MASK_CODE      0x000fu

static uint16_t dns_get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static void dns_put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* ---- names ---- */

/*
 * Copies the name at *at, pointers followed, and moves *at behind it. Returns its length, 0 if
 * malformed. A pointer leads backwards, so that there is an end, to what ends before the pointer,
 * so that it is the same in a message that is cut behind it, and not into the head, where no name
 * is.
 */
static size_t read_name(const uint8_t *message, size_t len, size_t *at, uint8_t out[DNS_NAME_MAX])
{
	size_t from = *at, end = len, n = 0;
	bool jumped = false;
	for (int pointers = 0; from < end;) {
		uint8_t size = message[from];
		if (size >= 0xc0) {
			size_t to = from + 1 < end ? dns_get16(message + from) & 0x3fffu : end;
			if (to < HEAD_SIZE || to >= from || ++pointers > POINTERS_MAX)
				return 0;
			*at = jumped ? *at : from + 2;
			jumped = true;
			end = from;
			from = to;
			continue;
		}
		if (size > 63 || from + 1 + size > end || n + 1 + size > DNS_NAME_MAX)
			return 0;
		memcpy(out + n, message + from, 1u + size);
		n += 1u + size;
		from += 1u + size;
		if (size == 0) {
			*at = jumped ? *at : from;
			return n;
		}
	}
	return 0;
}

/* Names of printable characters only: what else is in one is no host, and could be taken for
 * another name. */
static int name_to_text(const uint8_t *name, size_t len, char out[DNS_TEXT_SIZE])
{
	size_t n = 0;
	for (size_t at = 0; at < len && name[at]; at += 1u + name[at]) {
		if (n > 0)
			out[n++] = '.';
		for (unsigned i = 1; i <= name[at]; i++) {
			uint8_t c = name[at + i];
			if (c <= ' ' || c >= 0x7f || c == '.' || c == '\\')
				return -EINVAL;
			out[n++] = (char)tolower(c);
		}
	}
	out[n] = '\0';
	return 0;
}

static size_t name_from_text(const char *text, uint8_t out[DNS_NAME_MAX])
{
	size_t n = 0;
	while (*text) {
		size_t size = strcspn(text, ".");
		if (size == 0 || size > 63 || n + size + 2 > DNS_NAME_MAX)
			return 0;
		out[n++] = (uint8_t)size;
		memcpy(out + n, text, size);
		n += size;
		text += size;
		if (*text == '.' && *++text == '\0')
			return 0;
	}
	out[n++] = 0;
	return n;
}

static bool names_are_equal(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
	if (a_len != b_len)
		return false;
	for (size_t i = 0; i < a_len; i++)
		if (tolower(a[i]) != tolower(b[i]))
			return false;
	return true;
}

/* ---- questions ---- */

/* What the client has room for is in a record of its additional section. */
static int read_room(const uint8_t *message, size_t len, size_t at, struct dns_question *q)
{
	uint8_t name[DNS_NAME_MAX];
	q->room = 512;
	for (unsigned i = dns_get16(message + 10); i > 0; i--) {
		if (read_name(message, len, &at, name) == 0 || at + RECORD_FIXED > len)
			return -EINVAL;
		uint16_t type = dns_get16(message + at), room = dns_get16(message + at + 2);
		at += RECORD_FIXED + (size_t)dns_get16(message + at + 8);
		if (at > len)
			return -EINVAL;
		if (type == DNS_OPT && room > q->room)
			q->room = room < DNS_UDP_MAX ? room : DNS_UDP_MAX;
	}
	return 0;
}

int dns_read_question(const uint8_t *message, size_t len, struct dns_question *q)
{
	size_t at = HEAD_SIZE;
	*q = (struct dns_question){.room = 512};
	if (len < HEAD_SIZE)
		return -EINVAL;
	q->id = dns_get16(message);
	if (dns_get16(message + 2) & (FLAG_ANSWER | MASK_OPERATION | FLAG_TRUNCATED) ||
		dns_get16(message + 4) != 1 || dns_get16(message + 6) != 0 ||
		dns_get16(message + 8) != 0 || dns_get16(message + 10) > 4)
		return -EINVAL;
	size_t name_len = read_name(message, len, &at, q->name);
	if (name_len == 0 || at + 4 > len || dns_get16(message + at + 2) != CLASS_IN)
		return -EINVAL;
	q->type = dns_get16(message + at);
	if (name_to_text(q->name, name_len, q->text) < 0)
		return -EINVAL;
	q->name_len = name_len;
	return read_room(message, len, at + 4, q);
}

int dns_make_question(const char *name, uint16_t type, struct dns_question *q)
{
	*q = (struct dns_question){.type = type, .room = DNS_UDP_MAX};
	q->name_len = name_from_text(name, q->name);
	return q->name_len > 1 ? name_to_text(q->name, q->name_len, q->text) : -EINVAL;
}

static size_t write_head(const struct dns_question *q, uint16_t id, unsigned flags, uint8_t *out)
{
	memset(out, 0, HEAD_SIZE);
	dns_put16(out, id);
	dns_put16(out + 2, flags);
	dns_put16(out + 4, q->name_len > 0);
	memcpy(out + HEAD_SIZE, q->name, q->name_len);
	size_t n = HEAD_SIZE + q->name_len;
	if (q->name_len > 0) {
		dns_put16(out + n, q->type);
		dns_put16(out + n + 2, CLASS_IN);
		n += 4;
	}
	return n;
}

size_t dns_write_query(const struct dns_question *q, uint16_t id, uint8_t out[DNS_QUERY_MAX])
{
	static const uint8_t options[11] = {0, 0, DNS_OPT, DNS_UDP_MAX >> 8, DNS_UDP_MAX & 0xff};
	size_t n = write_head(q, id, FLAG_RECURSE, out);
	for (size_t i = HEAD_SIZE; i < HEAD_SIZE + q->name_len; i++)
		out[i] = (uint8_t)tolower(out[i]);
	dns_put16(out + 10, 1);
	memcpy(out + n, options, sizeof options);
	return n + sizeof options;
}

/* ---- answers ---- */

/* Returns where the records begin, 0 if it answers another question. */
static size_t skip_question(const uint8_t *message, size_t len, const struct dns_question *q)
{
	uint8_t name[DNS_NAME_MAX];
	size_t at = HEAD_SIZE;
	if (len < HEAD_SIZE || dns_get16(message + 4) != 1)
		return 0;
	size_t name_len = read_name(message, len, &at, name);
	if (!names_are_equal(name, name_len, q->name, q->name_len) || at + 4 > len ||
		dns_get16(message + at) != q->type || dns_get16(message + at + 2) != CLASS_IN)
		return 0;
	return at + 4;
}

bool dns_is_answer(const uint8_t *message, size_t len, const struct dns_question *q, uint16_t id,
	bool *truncated)
{
	if (len < HEAD_SIZE || dns_get16(message) != id ||
		!(dns_get16(message + 2) & FLAG_ANSWER) || skip_question(message, len, q) == 0)
		return false;
	*truncated = dns_get16(message + 2) & FLAG_TRUNCATED;
	return true;
}

struct record {
	uint8_t name[DNS_NAME_MAX];
	size_t name_len;
	uint16_t type, data_len;
	const uint8_t *fixed; /* type, class, time to live, length */
	size_t data;          /* where it is */
};

static bool read_record(const uint8_t *message, size_t len, size_t *at, struct record *r)
{
	r->name_len = read_name(message, len, at, r->name);
	if (r->name_len == 0 || *at + RECORD_FIXED > len)
		return false;
	r->fixed = message + *at;
	r->type = dns_get16(r->fixed);
	r->data_len = dns_get16(r->fixed + 8);
	r->data = *at + RECORD_FIXED;
	*at = r->data + r->data_len;
	return *at <= len && dns_get16(r->fixed + 2) == CLASS_IN;
}

struct writer {
	uint8_t *out;
	size_t len, size;
	unsigned count;
	bool full;
};

static void write_record(struct writer *w, const struct dns_question *q, const struct record *r,
	const uint8_t *data, size_t data_len)
{
	static const uint8_t the_question[] = {0xc0, HEAD_SIZE};
	bool same = names_are_equal(r->name, r->name_len, q->name, q->name_len);
	size_t name_len = same ? sizeof the_question : r->name_len;
	if (w->full || w->len + name_len + RECORD_FIXED + data_len > w->size) {
		w->full = true;
		return;
	}
	memcpy(w->out + w->len, same ? the_question : r->name, name_len);
	w->len += name_len;
	memcpy(w->out + w->len, r->fixed, 8);
	dns_put16(w->out + w->len + 8, (unsigned)data_len);
	memcpy(w->out + w->len + RECORD_FIXED, data, data_len);
	w->len += RECORD_FIXED + data_len;
	w->count++;
}

static bool read_address(const struct record *r, const uint8_t *data, struct address *ret)
{
	*ret = (struct address){{[10] = 0xff, [11] = 0xff}};
	if (r->type == DNS_A && r->data_len == 4)
		memcpy(ret->bytes + 12, data, 4);
	else if (r->type == DNS_AAAA && r->data_len == 16)
		memcpy(ret->bytes, data, 16);
	else
		return false;
	return true;
}

/* Of a question for addresses: addresses, and the names that lead to them. */
static bool write_addresses(struct writer *w, const struct dns_question *q, const uint8_t *message,
	size_t len, size_t at, bool (*keeps)(void *arg, const struct address *a), void *arg)
{
	struct record r;
	unsigned count = dns_get16(message + 6);
	for (unsigned i = 0; i < count && i < RECORDS_MAX; i++) {
		struct address address;
		uint8_t target[DNS_NAME_MAX];
		if (!read_record(message, len, &at, &r))
			return false;
		size_t inner = r.data, target_len;
		if (r.type == q->type && read_address(&r, message + r.data, &address)) {
			if (keeps(arg, &address))
				write_record(w, q, &r, message + r.data, r.data_len);
		} else if (r.type == DNS_CNAME) {
			target_len = read_name(message, len, &inner, target);
			if (target_len == 0 || inner != r.data + r.data_len)
				return false;
			write_record(w, q, &r, target, target_len);
		}
	}
	return true;
}

/* Of another question: the answer section as it is. Names in it may point into what is before it,
 * which is the same here, byte by byte. */
static bool write_section(struct writer *w, const uint8_t *message, size_t len, size_t at)
{
	struct record r;
	unsigned count = dns_get16(message + 6);
	size_t begin = at;
	for (unsigned i = 0; i < count; i++)
		if (i >= RECORDS_MAX || !read_record(message, len, &at, &r))
			return false;
	w->full = w->len + (at - begin) > w->size;
	if (w->full || begin != w->len)
		return w->full;
	memcpy(w->out + w->len, message + begin, at - begin);
	w->len += at - begin;
	w->count = count;
	return true;
}

size_t dns_write_answer(const struct dns_question *q, const uint8_t *message, size_t len,
	bool (*keeps)(void *arg, const struct address *a), void *arg, uint8_t *out, size_t size)
{
	size_t at = skip_question(message, len, q);
	if (at == 0 || size < HEAD_SIZE + q->name_len + 4)
		return 0;
	unsigned flags =
		FLAG_ANSWER | FLAG_RECURSE | FLAG_RECURSES | (dns_get16(message + 2) & MASK_CODE);
	struct writer w = {.out = out, .len = write_head(q, q->id, flags, out), .size = size};
	bool addresses = q->type == DNS_A || q->type == DNS_AAAA;
	if (!(addresses ? write_addresses(&w, q, message, len, at, keeps, arg)
			: write_section(&w, message, len, at)))
		return 0;
	dns_put16(out + 6, w.count);
	if (w.full)
		dns_put16(out + 2, flags | FLAG_TRUNCATED);
	return w.len;
}

size_t dns_write_code(const struct dns_question *q, enum dns_code code, uint8_t *out, size_t size)
{
	if (size < HEAD_SIZE + q->name_len + 4)
		return 0;
	return write_head(q, q->id, FLAG_ANSWER | FLAG_RECURSE | FLAG_RECURSES | code, out);
}
