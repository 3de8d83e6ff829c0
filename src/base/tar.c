#include "base/tar.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXTENDED_MAX (64u * 1024) /* of one extended header */
#define PLAIN        "BUNKER.plain"

struct ustar {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
	char target[100], magic[6], version[2], owner[32], group[32], major[8], minor[8];
	char prefix[155], unused[12];
};
static_assert(sizeof(struct ustar) == TAR_BLOCK, "a header is a block");

void tar_member_finish(struct tar_member *m)
{
	buf_finish(&m->path);
	buf_finish(&m->target);
}

/* ---- writing ---- */

static bool put_octal(char *field, size_t size, uint64_t value)
{
	for (size_t i = size - 1; i > 0; i--, value >>= 3)
		field[i - 1] = (char)('0' + (value & 7));
	return value == 0;
}

static unsigned tar_checksum(const struct ustar *h)
{
	const unsigned char *bytes = (const unsigned char *)h;
	unsigned sum = 0;
	for (size_t i = 0; i < TAR_BLOCK; i++) {
		bool own =
			i >= offsetof(struct ustar, checksum) && i < offsetof(struct ustar, type);
		sum += own ? ' ' : bytes[i];
	}
	return sum;
}

static void append_block(struct buf *out, struct ustar *h)
{
	memcpy(h->magic, "ustar", 6);
	memcpy(h->version, "00", 2);
	put_octal(h->checksum, 7, tar_checksum(h));
	h->checksum[7] = ' ';
	buf_append(out, h, sizeof *h);
}

/* "LENGTH KEY=VALUE\n", where LENGTH counts itself. */
static void append_pax(struct buf *out, const char *key, const char *value, size_t len)
{
	char number[24];
	size_t rest = strlen(key) + len + 3, total = rest + 1;
	for (int i = 0; i < 3; i++)
		total = rest + (size_t)snprintf(number, sizeof number, "%zu", total);
	snprintf(number, sizeof number, "%zu", total);
	buf_append_str(out, number);
	buf_append_char(out, ' ');
	buf_append_str(out, key);
	buf_append_char(out, '=');
	buf_append(out, value, len);
	buf_append_char(out, '\n');
}

static void tar_pad(struct buf *out, size_t len)
{
	static const char zeros[TAR_BLOCK];
	buf_append(out, zeros, (TAR_BLOCK - len % TAR_BLOCK) % TAR_BLOCK);
}

static void append_extended(struct buf *out, const struct buf *records)
{
	struct ustar h = {.type = 'x'};
	memcpy(h.name, "PaxHeader", 9);
	put_octal(h.mode, sizeof h.mode, 0644);
	put_octal(h.size, sizeof h.size, records->len);
	put_octal(h.mtime, sizeof h.mtime, 0);
	append_block(out, &h);
	buf_append(out, records->data, records->len);
	tar_pad(out, records->len);
}

static size_t text_len(const struct buf *text)
{
	return text->len ? text->len - 1 : 0;
}

/* Stores names in the ustar header as far as they fit; longer ones go into pax records. */
static void fill_names(struct ustar *h, const struct tar_member *m, struct buf *records)
{
	size_t path_len = text_len(&m->path), target_len = text_len(&m->target);
	memcpy(h->name, m->path.data, path_len < sizeof h->name ? path_len : sizeof h->name);
	if (path_len > sizeof h->name)
		append_pax(records, "path", m->path.data, path_len);
	if (m->plain)
		append_pax(records, PLAIN, "1", 1);
	if (target_len == 0)
		return;
	memcpy(h->target, m->target.data,
		target_len < sizeof h->target ? target_len : sizeof h->target);
	if (target_len > sizeof h->target)
		append_pax(records, "linkpath", m->target.data, target_len);
}

/* Nanoseconds count forward; in a decimal number a sign counts for both of its parts. */
static void format_time(char *text, size_t size, int64_t seconds, uint32_t ns)
{
	bool borrows = seconds < 0 && ns > 0;
	snprintf(text, size, "%s%llu.%09u", seconds < 0 ? "-" : "",
		(unsigned long long)(seconds < 0 ? -(seconds + borrows) : seconds),
		borrows ? 1000000000 - ns : ns);
}

static void fill_numbers(struct ustar *h, const struct tar_member *m, struct buf *records)
{
	char text[48];
	put_octal(h->mode, sizeof h->mode, m->mode & 07777);
	put_octal(h->uid, sizeof h->uid, m->uid);
	put_octal(h->gid, sizeof h->gid, m->gid);
	put_octal(h->major, sizeof h->major, m->major);
	put_octal(h->minor, sizeof h->minor, m->minor);
	if (!put_octal(h->size, sizeof h->size, m->size)) {
		snprintf(text, sizeof text, "%llu", (unsigned long long)m->size);
		append_pax(records, "size", text, strlen(text));
	}
	bool fits = m->mtime_s >= 0 && put_octal(h->mtime, sizeof h->mtime, (uint64_t)m->mtime_s);
	if (!fits)
		put_octal(h->mtime, sizeof h->mtime, 0);
	if (!fits || m->mtime_ns) {
		format_time(text, sizeof text, m->mtime_s, m->mtime_ns);
		append_pax(records, "mtime", text, strlen(text));
	}
}

void tar_append_header(struct buf *out, const struct tar_member *m)
{
	struct ustar h = {.type = m->type};
	autobuf records = {0};
	fill_names(&h, m, &records);
	fill_numbers(&h, m, &records);
	if (records.len > 0)
		append_extended(out, &records);
	out->failed |= records.failed;
	append_block(out, &h);
}

/* ---- numbers ---- */

/* Octal digits with blanks or NULs around, or, with the first bit set, base 256. */
static int tar_parse_number(const char *field, size_t size, uint64_t *ret)
{
	const unsigned char *p = (const unsigned char *)field;
	uint64_t value = 0;
	size_t i = 0;
	if (p[0] & 0x80) {
		if (p[0] & 0x40)
			return -EBADMSG; /* negative */
		for (i = 0; i < size; i++) {
			if (value >> 55)
				return -EBADMSG;
			value = value << 8 | (i ? p[i] : p[i] & 0x7f);
		}
		*ret = value;
		return 0;
	}
	while (i < size && p[i] == ' ')
		i++;
	for (; i < size && p[i] >= '0' && p[i] <= '7'; i++) {
		if (value >> 60)
			return -EBADMSG;
		value = value << 3 | (uint64_t)(p[i] - '0');
	}
	for (; i < size; i++)
		if (p[i] != ' ' && p[i] != '\0')
			return -EBADMSG;
	*ret = value;
	return value > INT64_MAX ? -EBADMSG : 0;
}

static int parse_small(const char *field, size_t size, uint32_t *ret)
{
	uint64_t value;
	if (tar_parse_number(field, size, &value) < 0 || value > UINT32_MAX)
		return -EBADMSG;
	*ret = (uint32_t)value;
	return 0;
}

static int tar_parse_decimal(const char *text, size_t len, int64_t *ret)
{
	int64_t value = 0;
	if (len == 0 || len > 18)
		return -EBADMSG;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EBADMSG;
		value = value * 10 + (text[i] - '0');
	}
	*ret = value;
	return 0;
}

/* "-12.5": seconds, rounded down, and nanoseconds above them. */
static int tar_parse_time(const char *text, size_t len, int64_t *seconds, uint32_t *ns)
{
	bool negative = len > 0 && text[0] == '-';
	const char *at = text + negative, *end = text + len;
	const char *dot = memchr(text, '.', len);
	uint32_t fraction = 0, unit = 100000000;
	if (tar_parse_decimal(at, (size_t)((dot ? dot : end) - at), seconds) < 0)
		return -EBADMSG;
	for (const char *p = dot ? dot + 1 : end; p < end; p++, unit /= 10) {
		if (*p < '0' || *p > '9')
			return -EBADMSG;
		fraction += (uint32_t)(*p - '0') * unit;
	}
	if (negative)
		*seconds = -*seconds - (fraction > 0);
	*ns = negative && fraction ? 1000000000 - fraction : fraction;
	return 0;
}

/* ---- reading ---- */

/* 1: the archive ends where a header could begin. */
static int read_block(struct tar_reader *t, struct ustar *h)
{
	return t->read(t->arg, (char *)h, sizeof *h);
}

static bool is_zero(const struct ustar *h)
{
	static const struct ustar zero;
	return memcmp(h, &zero, sizeof zero) == 0;
}

static int tar_take_text(struct buf *out, const char *bytes, size_t max)
{
	size_t len = strnlen(bytes, max);
	out->len = 0;
	buf_append(out, bytes, len);
	buf_append_char(out, '\0');
	return out->failed ? -ENOMEM : 0;
}

/* The content of an extended header. */
static int read_extended(struct tar_reader *t, const struct ustar *h, struct buf *out)
{
	uint64_t size;
	if (tar_parse_number(h->size, sizeof h->size, &size) < 0 || size > EXTENDED_MAX)
		return -EBADMSG;
	size_t padded = ((size_t)size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
	out->len = 0;
	if (!buf_reserve(out, padded + 1))
		return -ENOMEM;
	int r = padded ? t->read(t->arg, out->data, padded) : 0;
	out->len = (size_t)size;
	out->data[size] = '\0';
	return r == 1 ? -EBADMSG : r;
}

/* An owner, which is a number of 32 bits everywhere else. */
static int parse_owner(const char *text, size_t len, int64_t *ret)
{
	return tar_parse_decimal(text, len, ret) < 0 || *ret > UINT32_MAX ? -EBADMSG : 0;
}

static int tar_take_record(
	struct tar_reader *t, const char *key, size_t key_len, const char *value, size_t len)
{
#define IS(name) (key_len == strlen(name) && memcmp(key, name, key_len) == 0)
	if (IS("path") || IS("linkpath")) {
		if (memchr(value, '\0', len))
			return -EBADMSG;
		return tar_take_text(IS("path") ? &t->long_path : &t->long_target, value, len);
	}
	if (IS("size"))
		return tar_parse_decimal(value, len, &t->next_size);
	if (IS("uid"))
		return parse_owner(value, len, &t->next_uid);
	if (IS("gid"))
		return parse_owner(value, len, &t->next_gid);
	if (IS("mtime"))
		return tar_parse_time(value, len, &t->next_mtime_s, &t->next_mtime_ns);
	if (IS(PLAIN)) {
		t->next_plain = true;
		return 0;
	}
	/* The sizes of sparse files would be wrong without looking at their maps. */
	return key_len >= 10 && memcmp(key, "GNU.sparse", 10) == 0 ? -EBADMSG : 0;
#undef IS
}

static int tar_take_records(struct tar_reader *t, const struct buf *records)
{
	const char *at = records->data, *end = records->data + records->len;
	while (at < end) {
		const char *space = memchr(at, ' ', (size_t)(end - at));
		int64_t total;
		if (!space || tar_parse_decimal(at, (size_t)(space - at), &total) < 0 ||
			total < space - at + 3 || total > end - at || at[total - 1] != '\n')
			return -EBADMSG;
		const char *key = space + 1, *stop = at + total - 1;
		const char *equal = memchr(key, '=', (size_t)(stop - key));
		if (!equal)
			return -EBADMSG;
		int r = tar_take_record(
			t, key, (size_t)(equal - key), equal + 1, (size_t)(stop - equal - 1));
		if (r < 0)
			return r;
		at += total;
	}
	return 0;
}

static void forget_extended(struct tar_reader *t)
{
	t->long_path.len = t->long_target.len = 0;
	t->next_size = t->next_uid = t->next_gid = -1;
	t->next_mtime_s = INT64_MIN;
	t->next_plain = false;
}

/* Returns 1 if the header was an extended one; its records apply to the next member. */
static int take_extended(struct tar_reader *t, const struct ustar *h)
{
	autobuf content = {0};
	int r = 0;
	if (!strchr("xgLK", h->type) || h->type == '\0')
		return 0;
	r = read_extended(t, h, &content);
	if (r == 0 && h->type == 'x')
		r = tar_take_records(t, &content);
	else if (r == 0 && h->type != 'g')
		r = tar_take_text(h->type == 'L' ? &t->long_path : &t->long_target, content.data,
			content.len);
	return r < 0 ? r : 1;
}

static int take_names(struct tar_reader *t, const struct ustar *h)
{
	struct tar_member *m = &t->member;
	int r = 0;
	m->path.len = 0;
	if (t->long_path.len > 0) {
		buf_append(&m->path, t->long_path.data, t->long_path.len);
	} else {
		/* GNU's own format has other things where the prefix would be. */
		if (memcmp(h->magic, "ustar\0", 6) == 0 && h->prefix[0]) {
			buf_append(&m->path, h->prefix, strnlen(h->prefix, sizeof h->prefix));
			buf_append_char(&m->path, '/');
		}
		buf_append(&m->path, h->name, strnlen(h->name, sizeof h->name));
		buf_append_char(&m->path, '\0');
	}
	if (t->long_target.len > 0)
		r = tar_take_text(&m->target, t->long_target.data, t->long_target.len);
	else
		r = tar_take_text(&m->target, h->target, sizeof h->target);
	return m->path.failed ? -ENOMEM : r;
}

static int take_numbers(struct tar_reader *t, const struct ustar *h)
{
	struct tar_member *m = &t->member;
	uint64_t mtime;
	if (tar_parse_number(h->size, sizeof h->size, &m->size) < 0 ||
		parse_small(h->mode, sizeof h->mode, &m->mode) < 0 ||
		parse_small(h->uid, sizeof h->uid, &m->uid) < 0 ||
		parse_small(h->gid, sizeof h->gid, &m->gid) < 0)
		return -EBADMSG;
	/* A time before 1970 is no reason to refuse the file. */
	m->mtime_s = tar_parse_number(h->mtime, sizeof h->mtime, &mtime) < 0 ? 0 : (int64_t)mtime;
	m->mtime_ns = 0;
	m->plain = t->next_plain;
	if (t->next_mtime_s != INT64_MIN) {
		m->mtime_s = t->next_mtime_s;
		m->mtime_ns = t->next_mtime_ns;
	}
	m->size = t->next_size >= 0 ? (uint64_t)t->next_size : m->size;
	m->uid = t->next_uid >= 0 ? (uint32_t)t->next_uid : m->uid;
	m->gid = t->next_gid >= 0 ? (uint32_t)t->next_gid : m->gid;
	return 0;
}

/*
 * Old archives mark a directory by a trailing slash. Unknown types are read as files, as POSIX
 * requires.
 */
static void settle_type(struct tar_member *m, char type)
{
	size_t len = m->path.len - 1;
	m->type = type == '\0' || type == '7' ? '0' : type;
	if (m->type == '0' && len > 0 && m->path.data[len - 1] == '/')
		m->type = '5';
	/* A header may give a link a size, but only files have content. */
	if (m->type >= '1' && m->type <= '6')
		m->size = 0;
}

static int check_checksum(const struct ustar *h)
{
	uint32_t wanted;
	return parse_small(h->checksum, sizeof h->checksum, &wanted) == 0 &&
			       wanted == tar_checksum(h)
		       ? 0
		       : -EBADMSG;
}

int tar_next(struct tar_reader *t)
{
	struct ustar h;
	forget_extended(t);
	for (;;) {
		int r = read_block(t, &h);
		if (r != 0)
			return r == 1 ? 0 : r;
		if (is_zero(&h))
			return 0;
		r = check_checksum(&h);
		if (r == 0)
			r = take_extended(t, &h);
		if (r < 0)
			return r;
		if (r == 1)
			continue;
		r = take_names(t, &h);
		if (r == 0)
			r = take_numbers(t, &h);
		if (r < 0)
			return r;
		settle_type(&t->member, h.type);
		return 1;
	}
}

void tar_reader_finish(struct tar_reader *t)
{
	tar_member_finish(&t->member);
	buf_finish(&t->long_path);
	buf_finish(&t->long_target);
}

bool tar_clean_path(char *path)
{
	char *out = path;
	if (path[0] == '/')
		return false;
	for (const char *at = path; *at;) {
		size_t len = strcspn(at, "/");
		const char *next = at + len + (at[len] == '/');
		if (len == 2 && at[0] == '.' && at[1] == '.')
			return false;
		if (len > 0 && !(len == 1 && at[0] == '.')) {
			if (out > path)
				*out++ = '/';
			memmove(out, at, len);
			out += len;
		}
		at = next;
	}
	*out = '\0';
	return true;
}
