#define ZLIB_CONST
#include "image/inflate.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"

#define MAGIC_MAX 4
/* The window a decoder must keep: what zstd's usual levels use, and a bound for those who ask for
 * more. */
#define WINDOW_LOG_MAX 23

enum coding {
	CODING_UNKNOWN,
	CODING_PLAIN,
	CODING_GZIP,
	CODING_ZSTD
};

struct inflate {
	enum coding coding;
	char magic[MAGIC_MAX]; /* the first bytes, until it is known what they are */
	size_t magic_len, magic_used;
	bool inside; /* of a compressed piece that has not come to its end */
	z_stream gzip;
	ZSTD_DStream *zstd;
};

struct inflate *inflate_new(void)
{
	struct inflate *i = mem_new(sizeof *i);
	return i;
}

void inflate_free(struct inflate *i)
{
	if (!i)
		return;
	if (i->coding == CODING_GZIP)
		inflateEnd(&i->gzip);
	ZSTD_freeDStream(i->zstd);
	free(i);
}

static int inflate_broken(struct error *e)
{
	return error_set(e, ERROR_INVALID_ARCHIVE, "the archive's compression is broken");
}

static int inflate_begin(struct inflate *i, struct error *e)
{
	static const unsigned char gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
	if (i->magic_len >= sizeof gzip && memcmp(i->magic, gzip, sizeof gzip) == 0) {
		if (inflateInit2(&i->gzip, 15 + 16) != Z_OK)
			return error_set(e, ERROR_RESOURCE_EXHAUSTED, "out of memory");
		i->coding = CODING_GZIP;
	} else if (i->magic_len >= sizeof zstd && memcmp(i->magic, zstd, sizeof zstd) == 0) {
		i->zstd = ZSTD_createDStream();
		if (!i->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(
					i->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
			return error_set(e, ERROR_RESOURCE_EXHAUSTED, "out of memory");
		i->coding = CODING_ZSTD;
	} else {
		i->coding = CODING_PLAIN;
	}
	return 0;
}

static void step_plain(const char **data, size_t *len, size_t room, struct buf *out)
{
	size_t n = *len < room ? *len : room;
	buf_append(out, *data, n);
	*data += n;
	*len -= n;
}

/* Several pieces may follow each other, as parallel compressors write them. */
static int inflate_step_gzip(struct inflate *i, const char **data, size_t *len, size_t room,
	struct buf *out, struct error *e)
{
	if (!i->inside && *len > 0 && i->gzip.total_in > 0 && inflateReset(&i->gzip) != Z_OK)
		return inflate_broken(e);
	i->gzip.next_in = (const unsigned char *)*data;
	i->gzip.avail_in = (unsigned)*len;
	i->gzip.next_out = (unsigned char *)out->data + out->len;
	i->gzip.avail_out = (unsigned)room;
	int r = inflate(&i->gzip, Z_NO_FLUSH);
	if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
		return inflate_broken(e);
	*data += *len - i->gzip.avail_in;
	*len = i->gzip.avail_in;
	out->len += room - i->gzip.avail_out;
	i->inside = r != Z_STREAM_END;
	return 0;
}

static int inflate_step_zstd(struct inflate *i, const char **data, size_t *len, size_t room,
	struct buf *out, struct error *e)
{
	ZSTD_inBuffer from = {*data, *len, 0};
	ZSTD_outBuffer to = {out->data + out->len, room, 0};
	size_t r = ZSTD_decompressStream(i->zstd, &to, &from);
	if (ZSTD_isError(r))
		return inflate_broken(e);
	*data += from.pos;
	*len -= from.pos;
	out->len += to.pos;
	i->inside = r != 0;
	return 0;
}

static int inflate_decode(struct inflate *i, const char **data, size_t *len, size_t room,
	struct buf *out, struct error *e)
{
	if (i->coding == CODING_PLAIN) {
		step_plain(data, len, room, out);
		return 0;
	}
	/* The end of a piece gives nothing more without new bytes. */
	if (*len == 0 && !i->inside)
		return 0;
	return i->coding == CODING_GZIP ? inflate_step_gzip(i, data, len, room, out, e)
					: inflate_step_zstd(i, data, len, room, out, e);
}

int inflate_step(struct inflate *i, const char **data, size_t *len, size_t room, struct buf *out,
	struct error *e)
{
	while (i->coding == CODING_UNKNOWN && i->magic_len<MAGIC_MAX && * len> 0) {
		i->magic[i->magic_len++] = *(*data)++;
		--*len;
	}
	if (i->coding == CODING_UNKNOWN && i->magic_len < MAGIC_MAX)
		return 0;
	if (!buf_reserve(out, room))
		return error_set(e, ERROR_RESOURCE_EXHAUSTED, "out of memory");
	if (i->coding == CODING_UNKNOWN && inflate_begin(i, e) < 0)
		return -1;
	if (i->magic_used == i->magic_len)
		return inflate_decode(i, data, len, room, out, e);
	const char *magic = i->magic + i->magic_used;
	size_t left = i->magic_len - i->magic_used;
	int r = inflate_decode(i, &magic, &left, room, out, e);
	i->magic_used = i->magic_len - left;
	return r;
}

bool inflate_is_gzip(const struct inflate *i)
{
	return i->coding == CODING_GZIP;
}

int inflate_end(const struct inflate *i, struct error *e)
{
	bool short_of_magic = i->coding == CODING_UNKNOWN && i->magic_len > 0;
	if (i->inside || short_of_magic)
		return error_set(e, ERROR_INVALID_ARCHIVE, "the archive is cut short");
	return 0;
}
