#define ZLIB_CONST
#include "image/zip.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/tar_push.h"
#include "base/utf8.h"

#define LEVEL         4
#define DIRECTORY_MAX (64u << 20) /* half a million names */
#define WIDE_SIZE     0xf0000000u /* from here on numbers may need 64 bits */
#define STORED        0
#define DEFLATED      8
#define HAS_TRAILER   (1u << 3)
#define NAME_IS_UTF8  (1u << 11)
#define MADE_ON_UNIX  (3u << 8)

/* One member, as the directory will tell it. */
struct entry {
	unsigned method, flags;
	bool wide; /* its lengths have 64 bits */
	uint32_t crc, mode;
	uint64_t size, packed, at;
	int64_t mtime_s;
};

struct zip_writer {
	struct tar_push tar;
	const char *piece; /* of content, not compressed yet */
	size_t piece_len;
	bool in_file;  /* its content is being compressed */
	uint64_t left; /* of it, the piece included */
	bool over;     /* the archive has ended */
	struct entry entry;
	struct buf name;
	z_stream deflate;
	struct buf directory;
	uint64_t count, written;
	size_t told; /* of the directory */
	bool closed; /* its end is in it */
};

/* ---- numbers, the lowest byte first ---- */

static void image_zip_put16(struct buf *out, unsigned value)
{
	const unsigned char bytes[] = {(unsigned char)value, (unsigned char)(value >> 8)};
	buf_append(out, bytes, sizeof bytes);
}

static void image_zip_put32(struct buf *out, uint32_t value)
{
	image_zip_put16(out, value & 0xffff);
	image_zip_put16(out, value >> 16);
}

static void image_zip_put64(struct buf *out, uint64_t value)
{
	image_zip_put32(out, (uint32_t)value);
	image_zip_put32(out, (uint32_t)(value >> 32));
}

/* Sizes that do not fit go into an extra field. */
static uint32_t image_zip_narrow(uint64_t value)
{
	return value < WIDE_SIZE ? (uint32_t)value : 0xffffffffu;
}

/* The old form has no zone, no year before 1980, and counts by two seconds; the extra field is for
 * those that want to know. */
static void put_dos_time(struct buf *out, int64_t seconds)
{
	struct tm t = {0};
	time_t when = (time_t)seconds;
	if (!gmtime_r(&when, &t) || t.tm_year < 80 || t.tm_year > 207)
		t = (struct tm){.tm_year = 80, .tm_mday = 1};
	image_zip_put16(out, (unsigned)(t.tm_hour << 11 | t.tm_min << 5 | t.tm_sec / 2));
	image_zip_put16(out, (unsigned)((t.tm_year - 80) << 9 | (t.tm_mon + 1) << 5 | t.tm_mday));
}

static void put_time_extra(struct buf *out, int64_t seconds)
{
	image_zip_put16(out, 0x5455);
	image_zip_put16(out, 5);
	buf_append_char(out, 1);
	image_zip_put32(out, (uint32_t)seconds);
}

/* ---- members ---- */

/* Writes the fields that a local header and the directory share. */
static void put_common(struct buf *out, const struct entry *e, bool known, size_t name_len)
{
	image_zip_put16(out, e->wide ? 45 : 20);
	image_zip_put16(out, e->flags);
	image_zip_put16(out, e->method);
	put_dos_time(out, e->mtime_s);
	image_zip_put32(out, known ? e->crc : 0);
	image_zip_put32(out, e->wide ? 0xffffffffu : known ? (uint32_t)e->packed : 0);
	image_zip_put32(out, e->wide ? 0xffffffffu : known ? (uint32_t)e->size : 0);
	image_zip_put16(out, (unsigned)name_len);
}

static void put_local_header(struct zip_writer *z, struct buf *out)
{
	const struct entry *e = &z->entry;
	buf_append(out, "PK\3\4", 4);
	put_common(out, e, !(e->flags & HAS_TRAILER), z->name.len);
	image_zip_put16(out, e->wide ? 20 : 0);
	buf_append(out, z->name.data, z->name.len);
	if (e->wide) {
		image_zip_put16(out, 1);
		image_zip_put16(out, 16);
		image_zip_put64(out, 0);
		image_zip_put64(out, 0);
	}
}

static int put_directory_entry(struct zip_writer *z, struct error *err)
{
	const struct entry *e = &z->entry;
	struct buf *out = &z->directory;
	bool far = e->at >= WIDE_SIZE;
	unsigned wide_size = (e->wide ? 16u : 0) + (far ? 8u : 0);
	buf_append(out, "PK\1\2", 4);
	image_zip_put16(out, MADE_ON_UNIX | 45);
	put_common(out, e, true, z->name.len);
	image_zip_put16(out, 9 + (wide_size ? 4 + wide_size : 0));
	image_zip_put16(out, 0); /* no comment */
	image_zip_put16(out, 0); /* the first disk */
	image_zip_put16(out, 0);
	image_zip_put32(out, e->mode << 16 | (S_ISDIR(e->mode) ? 0x10 : 0));
	image_zip_put32(out, image_zip_narrow(e->at));
	buf_append(out, z->name.data, z->name.len);
	put_time_extra(out, e->mtime_s);
	if (wide_size) {
		image_zip_put16(out, 1);
		image_zip_put16(out, wide_size);
		if (e->wide) {
			image_zip_put64(out, e->size);
			image_zip_put64(out, e->packed);
		}
		if (far)
			image_zip_put64(out, e->at);
	}
	z->count++;
	if (out->failed || out->len > DIRECTORY_MAX)
		return error_set(err, ERROR_RESOURCE_EXHAUSTED,
			"there are too many files for a zip archive of this server");
	return 0;
}

static int image_zip_begin_entry(struct zip_writer *z, const struct tar_member *m, mode_t type)
{
	z->entry = (struct entry){.mode = (uint32_t)type | (m->mode & 07777),
		.mtime_s = m->mtime_s,
		.at = z->written};
	z->name.len = 0;
	buf_append_str(&z->name, m->path.data);
	if (type == S_IFDIR)
		buf_append_char(&z->name, '/');
	if (z->name.failed || z->name.len > UINT16_MAX)
		return -1;
	if (utf8_is_valid(z->name.data, z->name.len))
		z->entry.flags = NAME_IS_UTF8;
	return 0;
}

/* A directory, or a link: what there is of it is known. */
static int put_whole(
	struct zip_writer *z, const char *content, size_t len, struct buf *out, struct error *e)
{
	z->entry.method = STORED;
	z->entry.size = z->entry.packed = len;
	z->entry.crc = len ? (uint32_t)crc32(0, (const unsigned char *)content, (unsigned)len) : 0;
	put_local_header(z, out);
	buf_append(out, content, len);
	return put_directory_entry(z, e);
}

static void image_zip_begin_content(struct zip_writer *z, uint64_t size, struct buf *out)
{
	z->entry.method = DEFLATED;
	z->entry.flags |= HAS_TRAILER;
	z->entry.size = size;
	z->entry.wide = size >= WIDE_SIZE;
	deflateReset(&z->deflate);
	put_local_header(z, out);
	z->in_file = true;
	z->left = size;
}

static int image_zip_end_content(struct zip_writer *z, struct buf *out, struct error *e)
{
	struct entry *entry = &z->entry;
	buf_append(out, "PK\7\10", 4);
	image_zip_put32(out, entry->crc);
	if (entry->wide) {
		image_zip_put64(out, entry->packed);
		image_zip_put64(out, entry->size);
	} else {
		image_zip_put32(out, (uint32_t)entry->packed);
		image_zip_put32(out, (uint32_t)entry->size);
	}
	z->in_file = false;
	return put_directory_entry(z, e);
}

static int image_zip_take_member(
	struct zip_writer *z, struct tar_member *m, struct buf *out, struct error *e)
{
	mode_t type = m->type == '0' ? S_IFREG : m->type == '2' ? S_IFLNK : S_IFDIR;
	if (m->type != '0' && m->type != '2' && m->type != '5')
		return 0;
	if (!tar_clean_path(m->path.data))
		return error_set(e, ERROR_INTERNAL, "the sandbox gave no archive");
	if (m->path.data[0] == '\0')
		return 0; /* the top itself */
	if (image_zip_begin_entry(z, m, type) < 0)
		return error_set(e, ERROR_INVALID_ARCHIVE, "a name is too long for a zip archive");
	if (m->type == '0') {
		image_zip_begin_content(z, m->size, out);
		return 0;
	}
	size_t len = m->type == '2' ? strlen(m->target.data) : 0;
	return put_whole(z, m->target.data, len, out, e);
}

/* ---- the tar archive ---- */

static int compress_piece(struct zip_writer *z, size_t room, struct buf *out, struct error *e)
{
	struct entry *entry = &z->entry;
	if (!buf_reserve(out, room))
		return error_set(e, ERROR_INTERNAL, "out of memory");
	z->deflate.next_in = (const unsigned char *)z->piece;
	z->deflate.avail_in = (unsigned)z->piece_len;
	z->deflate.next_out = (unsigned char *)out->data + out->len;
	z->deflate.avail_out = (unsigned)room;
	int r = deflate(&z->deflate, z->piece_len == z->left ? Z_FINISH : Z_NO_FLUSH);
	size_t taken = z->piece_len - z->deflate.avail_in, given = room - z->deflate.avail_out;
	if (taken > 0) { /* the sum of no bytes would begin anew */
		entry->crc = (uint32_t)crc32(
			entry->crc, (const unsigned char *)z->piece, (unsigned)taken);
		z->piece += taken;
		z->piece_len -= taken;
		z->left -= taken;
	}
	entry->packed += given;
	out->len += given;
	return r == Z_STREAM_END ? image_zip_end_content(z, out, e) : 0;
}

/* 0: go on; 1: more bytes are needed, or none ever. */
static int take_step(struct zip_writer *z, struct buf *out, struct error *e)
{
	switch (tar_push_step(&z->tar)) {
	case TAR_MORE:
		return 1;
	case TAR_MEMBER:
		return image_zip_take_member(z, &z->tar.reader.member, out, e);
	case TAR_CONTENT:
		if (z->in_file) {
			z->piece = z->tar.piece;
			z->piece_len = z->tar.piece_len;
		}
		return 0;
	case TAR_END:
		z->over = true;
		return 1;
	default:
		return error_set(e, ERROR_INTERNAL, "the sandbox gave no archive");
	}
}

int zip_writer_step(struct zip_writer *z, const char **data, size_t *len, size_t room,
	struct buf *out, struct error *e)
{
	size_t before = out->len;
	int r = 0;
	/* A piece is where it is until more is added. */
	if (z->piece_len == 0 && *len > 0) {
		tar_push_add(&z->tar, *data, *len);
		*data += *len;
		*len = 0;
	}
	while (r == 0 && out->len - before < room) {
		size_t had = out->len;
		if (z->in_file && (z->piece_len > 0 || z->left == 0))
			r = compress_piece(z, room - (out->len - before), out, e);
		else
			r = take_step(z, out, e);
		z->written += out->len - had;
	}
	if (r >= 0 && out->failed)
		return error_set(e, ERROR_INTERNAL, "out of memory");
	return r < 0 ? -1 : 0;
}

/* ---- the end ---- */

static void close_directory(struct zip_writer *z)
{
	struct buf *out = &z->directory;
	uint64_t size = out->len, at = z->written;
	if (z->count >= UINT16_MAX || at >= WIDE_SIZE) {
		buf_append(out, "PK\6\6", 4);
		image_zip_put64(out, 44);
		image_zip_put16(out, MADE_ON_UNIX | 45);
		image_zip_put16(out, 45);
		image_zip_put32(out, 0);
		image_zip_put32(out, 0);
		image_zip_put64(out, z->count);
		image_zip_put64(out, z->count);
		image_zip_put64(out, size);
		image_zip_put64(out, at);
		buf_append(out, "PK\6\7", 4);
		image_zip_put32(out, 0);
		image_zip_put64(out, at + size);
		image_zip_put32(out, 1);
	}
	unsigned count = z->count < UINT16_MAX ? (unsigned)z->count : UINT16_MAX;
	buf_append(out, "PK\5\6", 4);
	image_zip_put16(out, 0);
	image_zip_put16(out, 0);
	image_zip_put16(out, count);
	image_zip_put16(out, count);
	image_zip_put32(out, image_zip_narrow(size));
	image_zip_put32(out, image_zip_narrow(at));
	image_zip_put16(out, 0);
	z->closed = true;
}

int zip_writer_finish(struct zip_writer *z, size_t room, struct buf *out, struct error *e)
{
	if (!z->over)
		return error_set(e, ERROR_INTERNAL, "the sandbox's archive has no end");
	if (!z->closed)
		close_directory(z);
	size_t left = z->directory.len - z->told, n = left < room ? left : room;
	buf_append(out, z->directory.data + z->told, n);
	z->told += n;
	if (z->directory.failed || out->failed)
		return error_set(e, ERROR_INTERNAL, "out of memory");
	return n == left;
}

struct zip_writer *zip_writer_new(void)
{
	struct zip_writer *z = mem_new(sizeof *z);
	/* The arguments are valid: what can be missing is memory. */
	if (deflateInit2(&z->deflate, LEVEL, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		mem_exhausted(sizeof z->deflate);
	return z;
}

void zip_writer_free(struct zip_writer *z)
{
	if (!z)
		return;
	deflateEnd(&z->deflate);
	tar_push_finish(&z->tar);
	buf_finish(&z->name);
	buf_finish(&z->directory);
	free(z);
}
