#include "image/portable_entry.h"

#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define CHUNK 49152u /* of base64, decoded at once */

static const char *const kind_names[ENTRY_KIND_COUNT] = {[ENTRY_FILE] = "files",
	[ENTRY_DIRECTORY] = "directories",
	[ENTRY_LINK] = "links",
	[ENTRY_HARD_LINK] = "hardLinks",
	[ENTRY_DELETED] = "deleted"};

static const char types[ENTRY_KIND_COUNT] = {[ENTRY_FILE] = '0',
	[ENTRY_DIRECTORY] = '5',
	[ENTRY_LINK] = '2',
	[ENTRY_HARD_LINK] = '1',
	[ENTRY_DELETED] = '0'};

#define OF(kind)   (1u << ENTRY_##kind)
#define OF_ANY     (OF(FILE) | OF(DIRECTORY) | OF(LINK) | OF(HARD_LINK) | OF(DELETED))
#define OF_LINKS   (OF(LINK) | OF(HARD_LINK))
#define OF_PRESENT (OF_ANY & ~OF(DELETED))

static const struct {
	const char *name;
	unsigned kinds; /* that have it */
	bool is_number;
	int64_t min, max;
} fields[ENTRY_FIELD_COUNT] = {
	[FIELD_PATH] = {"path", OF_ANY, false, 0, 0},
	[FIELD_PATH_BYTES] = {"pathBase64", OF_ANY, false, 0, 0},
	[FIELD_TARGET] = {"target", OF_LINKS, false, 0, 0},
	[FIELD_TARGET_BYTES] = {"targetBase64", OF_LINKS, false, 0, 0},
	[FIELD_MODE] = {"mode", OF(FILE) | OF(DIRECTORY), false, 0, 0},
	[FIELD_UID] = {"uid", OF_PRESENT, true, 0, PORTABLE_ID_MAX},
	[FIELD_GID] = {"gid", OF_PRESENT, true, 0, PORTABLE_ID_MAX},
	[FIELD_MTIME] = {"mtime", OF_PRESENT, true, -(INT64_C(1) << 53), INT64_C(1) << 53},
	[FIELD_SIZE] = {"size", OF(FILE), true, 0, INT64_C(1) << 40},
	[FIELD_ENCODING] = {"encoding", OF(FILE), false, 0, 0},
	[FIELD_CONTENTS] = {"contents", OF(FILE), false, 0, 0},
};

/* "files[3].path" and what is wrong with it. */
__attribute__((format(printf, 4, 5))) static int refuse(
	const struct portable_entry *n, const char *field, struct error *e, const char *format, ...)
{
	char where[64], why[256];
	va_list args;
	snprintf(where, sizeof where, "%s[%zu].%s", kind_names[n->kind], n->index, field);
	va_start(args, format);
	vsnprintf(why, sizeof why, format, args);
	va_end(args);
	return error_set_field(e, ERROR_INVALID_FIELD, where, "\"%s\" %s", where, why);
}

static int portable_entry_fail_memory(struct error *e)
{
	return error_set(e, ERROR_UNAVAILABLE, "out of memory");
}

/* ---- fields ---- */

void portable_entry_begin(struct portable_entry *n, enum entry_kind kind, size_t index)
{
	struct tar_member *m = &n->member;
	n->kind = kind;
	n->index = index;
	n->seen = 0;
	m->type = types[kind];
	m->size = 0;
	m->mode = kind == ENTRY_DIRECTORY ? 0755 : 0644;
	m->uid = m->gid = 0;
	m->mtime_s = clock_wall_ms() / 1000;
	m->mtime_ns = 0;
	m->path.len = m->target.len = n->path_bytes.len = n->target_bytes.len = 0;
	n->content.len = n->rest.len = 0;
	n->base64 = n->streams = n->begun = n->padded = false;
	n->written = 0;
}

void portable_entry_finish(struct portable_entry *n)
{
	tar_member_finish(&n->member);
	buf_finish(&n->path_bytes);
	buf_finish(&n->target_bytes);
	buf_finish(&n->content);
	buf_finish(&n->rest);
}

int portable_entry_field_of(struct portable_entry *n, const char *key, struct error *e)
{
	for (int i = 0; i < ENTRY_FIELD_COUNT; i++) {
		if (strcmp(fields[i].name, key) != 0 || !(fields[i].kinds & (1u << n->kind)))
			continue;
		if (n->seen & (1u << i))
			return refuse(n, key, e, "is there twice");
		if (n->streams)
			return refuse(n, key, e, "must come before \"contents\"");
		n->seen |= 1u << i;
		return i;
	}
	char where[64];
	snprintf(where, sizeof where, "%s[%zu].%.24s", kind_names[n->kind], n->index, key);
	return error_set_field(e, ERROR_UNKNOWN_FIELD, where, "\"%s\" is not a known field", where);
}

bool portable_entry_field_is_number(enum entry_field field)
{
	return fields[field].is_number;
}

static bool portable_entry_has(const struct portable_entry *n, enum entry_field field)
{
	return n->seen & (1u << field);
}

static int portable_entry_put_mode(
	struct portable_entry *n, const struct buf *text, struct error *e)
{
	char *end = NULL;
	unsigned long mode = 0;
	if (text->len > 0 && text->len <= 5 && strspn(text->data, "01234567") == text->len)
		mode = strtoul(text->data, &end, 8);
	if (!end || mode > 07777)
		return refuse(n, "mode", e, "must be octal, such as \"0644\"");
	n->member.mode = (uint32_t)mode;
	return 0;
}

static int put_encoding(struct portable_entry *n, const struct buf *text, struct error *e)
{
	n->base64 = strcmp(text->data, "base64") == 0;
	if (!n->base64 && strcmp(text->data, "utf8") != 0)
		return refuse(n, "encoding", e, "must be \"base64\" or \"utf8\"");
	return 0;
}

static int portable_entry_put_bytes(struct portable_entry *n, enum entry_field field,
	const struct buf *text, struct buf *out, struct error *e)
{
	size_t len;
	const char *end;
	if (!buf_reserve(out, text->len + 1))
		return portable_entry_fail_memory(e);
	if (sodium_base642bin((unsigned char *)out->data, text->len + 1, text->data, text->len,
		    NULL, &len, &end, sodium_base64_VARIANT_ORIGINAL) != 0 ||
		end != text->data + text->len || memchr(out->data, '\0', len))
		return refuse(n, fields[field].name, e, "must be base64, of bytes without NUL");
	out->len = len;
	buf_append_char(out, '\0');
	return 0;
}

int portable_entry_put_text(
	struct portable_entry *n, enum entry_field field, const struct buf *text, struct error *e)
{
	struct buf *out = NULL;
	switch (field) {
	case FIELD_MODE:
		return portable_entry_put_mode(n, text, e);
	case FIELD_ENCODING:
		return put_encoding(n, text, e);
	case FIELD_PATH_BYTES:
		return portable_entry_put_bytes(n, field, text, &n->path_bytes, e);
	case FIELD_TARGET_BYTES:
		return portable_entry_put_bytes(n, field, text, &n->target_bytes, e);
	default:
		out = field == FIELD_PATH ? &n->member.path : &n->member.target;
		buf_append(out, text->data, text->len);
		buf_append_char(out, '\0');
		return out->failed ? portable_entry_fail_memory(e) : 0;
	}
}

int portable_entry_put_number(
	struct portable_entry *n, enum entry_field field, int64_t number, struct error *e)
{
	struct tar_member *m = &n->member;
	if (number < fields[field].min || number > fields[field].max)
		return refuse(n, fields[field].name, e, "must be between %lld and %lld",
			(long long)fields[field].min, (long long)fields[field].max);
	if (field == FIELD_UID) {
		m->uid = (uint32_t)number;
	} else if (field == FIELD_GID) {
		m->gid = (uint32_t)number;
	} else if (field == FIELD_SIZE) {
		n->size = number;
	} else {
		m->mtime_s = number / 1000 - (number % 1000 < 0);
		m->mtime_ns = (uint32_t)((number - m->mtime_s * 1000) * 1000000);
	}
	return 0;
}

/* ---- what they come to ---- */

/* The bytes, where they are given, before the text. */
static int settle_name(struct portable_entry *n, struct buf *name, const struct buf *bytes,
	enum entry_field field, struct error *e)
{
	if (bytes->len > 0) {
		name->len = 0;
		buf_append(name, bytes->data, bytes->len);
	}
	if (name->failed)
		return portable_entry_fail_memory(e);
	if (name->len <= 1 || name->len - 1 > PORTABLE_PATH_MAX)
		return refuse(
			n, fields[field].name, e, "must have 1 to %u bytes", PORTABLE_PATH_MAX);
	return 0;
}

static void portable_entry_clean(struct buf *name)
{
	name->len = strlen(name->data) + 1;
}

static bool is_like_whiteout(const char *path)
{
	const char *slash = strrchr(path, '/');
	return strncmp(slash ? slash + 1 : path, ".wh.", 4) == 0;
}

/* A deletion is a member ".wh.NAME". */
static int portable_entry_hide(struct portable_entry *n, struct error *e)
{
	struct buf *path = &n->member.path;
	autobuf marked = {0};
	if (n->member.plain)
		return refuse(n, "path", e, "must not have a name that begins with \".wh.\"");
	const char *slash = strrchr(path->data, '/'), *name = slash ? slash + 1 : path->data;
	buf_append(&marked, path->data, (size_t)(name - path->data));
	buf_append_str(&marked, ".wh.");
	buf_append_str(&marked, name);
	buf_append_char(&marked, '\0');
	if (marked.failed)
		return portable_entry_fail_memory(e);
	struct buf old = *path;
	*path = marked;
	marked = old;
	return 0;
}

static int use_path(struct portable_entry *n, struct portable_paths *used, struct error *e)
{
	const char *path = n->member.path.data;
	if (used->count >= PORTABLE_ENTRIES_MAX)
		return refuse(n, "path", e, "is one more than the %u that there may be",
			PORTABLE_ENTRIES_MAX);
	int r = portable_paths_use(used, path);
	if (r == -EEXIST)
		return refuse(n, "path", e, "is there twice: %.120s", path);
	return r < 0 ? portable_entry_fail_memory(e) : 0;
}

static int settle_path(struct portable_entry *n, struct portable_paths *used, struct error *e)
{
	struct buf *path = &n->member.path;
	if (settle_name(n, path, &n->path_bytes, FIELD_PATH, e) < 0)
		return -1;
	if (!tar_clean_path(path->data))
		return refuse(n, "path", e, "must be relative, and without \"..\"");
	portable_entry_clean(path);
	if (path->len == 1 && n->kind != ENTRY_DIRECTORY)
		return refuse(n, "path", e, "must name something below the root");
	n->member.plain = is_like_whiteout(path->data);
	if (n->kind == ENTRY_DELETED)
		return portable_entry_hide(n, e);
	if (use_path(n, used, e) < 0)
		return -1;
	if (path->len == 1) { /* the root itself */
		path->len = 0;
		buf_append(path, ".", 2);
	}
	return 0;
}

static int settle_target(struct portable_entry *n, struct error *e)
{
	struct buf *target = &n->member.target;
	if (n->kind != ENTRY_LINK && n->kind != ENTRY_HARD_LINK)
		return 0;
	if (settle_name(n, target, &n->target_bytes, FIELD_TARGET, e) < 0)
		return -1;
	if (n->kind == ENTRY_LINK)
		return 0;
	if (!tar_clean_path(target->data))
		return refuse(n, "target", e, "must be relative, and without \"..\"");
	portable_entry_clean(target);
	return 0;
}

static int portable_entry_begin_member(struct portable_entry *n, struct portable_paths *used,
	uint64_t size, struct buf *out, struct error *e)
{
	if (settle_path(n, used, e) < 0 || settle_target(n, e) < 0)
		return -1;
	n->member.size = size;
	n->begun = true;
	tar_append_header(out, &n->member);
	return out->failed ? portable_entry_fail_memory(e) : 0;
}

/* ---- content ---- */

static int portable_entry_write_content(
	struct portable_entry *n, const char *bytes, size_t len, struct buf *out, struct error *e)
{
	n->written += len;
	if (n->written > (uint64_t)n->size)
		return refuse(n, "contents", e, "is longer than its \"size\"");
	buf_append(out, bytes, len);
	return out->failed ? portable_entry_fail_memory(e) : 0;
}

static int decode_groups(
	struct portable_entry *n, const char *text, size_t len, struct buf *out, struct error *e)
{
	unsigned char bytes[CHUNK / 4 * 3 + 3];
	const char *end;
	size_t got;
	if (n->padded ||
		sodium_base642bin(bytes, sizeof bytes, text, len, NULL, &got, &end,
			sodium_base64_VARIANT_ORIGINAL) != 0 ||
		end != text + len)
		return refuse(n, "contents", e, "is not valid base64");
	n->padded = text[len - 1] == '=';
	return portable_entry_write_content(n, (const char *)bytes, got, out, e);
}

/* In groups of four; what is left of one waits for the rest of it. */
static int portable_entry_decode(
	struct portable_entry *n, const char *text, size_t len, struct buf *out, struct error *e)
{
	while (len > 0 && n->rest.len > 0) {
		buf_append_char(&n->rest, *text++);
		len--;
		if (n->rest.len < 4)
			continue;
		n->rest.len = 0;
		if (decode_groups(n, n->rest.data, 4, out, e) < 0)
			return -1;
	}
	for (size_t groups; (groups = (len < CHUNK ? len : CHUNK) / 4 * 4) > 0;) {
		if (decode_groups(n, text, groups, out, e) < 0)
			return -1;
		text += groups;
		len -= groups;
	}
	buf_append(&n->rest, text, len);
	return n->rest.failed ? portable_entry_fail_memory(e) : 0;
}

static int portable_entry_put_content(
	struct portable_entry *n, const char *text, size_t len, struct buf *out, struct error *e)
{
	return n->base64 ? portable_entry_decode(n, text, len, out, e)
			 : portable_entry_write_content(n, text, len, out, e);
}

int portable_entry_put_contents(struct portable_entry *n, struct portable_paths *used,
	const char *text, size_t len, struct buf *out, struct error *e)
{
	if (!n->begun && portable_entry_has(n, FIELD_SIZE) &&
		portable_entry_has(n, FIELD_ENCODING) &&
		(portable_entry_has(n, FIELD_PATH) || portable_entry_has(n, FIELD_PATH_BYTES))) {
		n->streams = true;
		if (portable_entry_begin_member(n, used, (uint64_t)n->size, out, e) < 0)
			return -1;
	}
	if (n->streams)
		return portable_entry_put_content(n, text, len, out, e);
	if (len > PORTABLE_WHOLE_MAX - n->content.len)
		return refuse(n, "contents", e,
			"is longer than %u MiB; \"size\" and \"encoding\" must come before it then",
			PORTABLE_WHOLE_MAX >> 20);
	buf_append(&n->content, text, len);
	return n->content.failed ? portable_entry_fail_memory(e) : 0;
}

/* Kept until its encoding was known: its size comes out of that. */
static int write_kept(
	struct portable_entry *n, struct portable_paths *used, struct buf *out, struct error *e)
{
	autobuf bytes = {0};
	bool told = portable_entry_has(n, FIELD_SIZE);
	int64_t size = n->size;
	n->size = PORTABLE_WHOLE_MAX;
	if (portable_entry_put_content(n, n->content.data, n->content.len, &bytes, e) < 0)
		return -1;
	if (told && (uint64_t)size != n->written)
		return refuse(n, "contents", e, "is not as long as its \"size\"");
	n->size = (int64_t)n->written;
	if (portable_entry_begin_member(n, used, n->written, out, e) < 0)
		return -1;
	buf_append(out, bytes.data, bytes.len);
	return 0;
}

static int portable_entry_end_content(struct portable_entry *n, struct buf *out, struct error *e)
{
	static const char zeros[TAR_BLOCK];
	if (n->rest.len > 0)
		return refuse(n, "contents", e, "is not valid base64");
	if (n->written != (uint64_t)n->size)
		return refuse(n, "contents", e, "is not as long as its \"size\"");
	buf_append(out, zeros, (TAR_BLOCK - n->written % TAR_BLOCK) % TAR_BLOCK);
	return out->failed ? portable_entry_fail_memory(e) : 0;
}

int portable_entry_end(
	struct portable_entry *n, struct portable_paths *used, struct buf *out, struct error *e)
{
	if (!portable_entry_has(n, FIELD_PATH) && !portable_entry_has(n, FIELD_PATH_BYTES)) {
		refuse(n, "path", e, "is required");
		e->code = ERROR_MISSING_FIELD;
		return -1;
	}
	if (n->kind != ENTRY_FILE)
		return portable_entry_begin_member(n, used, 0, out, e);
	if (!n->streams && write_kept(n, used, out, e) < 0)
		return -1;
	return portable_entry_end_content(n, out, e);
}
