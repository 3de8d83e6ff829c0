/* Zip archives: the first byte says which part gets the rest.
 * What zlib expands we expand to the same, and nothing else; whatever a directory says, content is
 * inside the archive; a tar archive that became a zip archive is read as one.
 *
 * fuzz-sources: src/base/deflate.c src/base/tar_push.c src/base/zip.c src/image/zip.c
 */
#define ZLIB_CONST
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/deflate.h"
#include "base/tar.h"
#include "base/zip.h"
#include "image/zip.h"

#define EXPANDED_MAX (4u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- deflate ---- */

struct flow {
	const uint8_t *at, *end;
	struct buf out;
};

/* In pieces, so that every boundary is met. */
static ssize_t read_flow(void *arg, unsigned char *bytes, size_t max)
{
	struct flow *f = arg;
	size_t left = (size_t)(f->end - f->at), n = left < 7 ? left : 7;
	n = n < max ? n : max;
	memcpy(bytes, f->at, n);
	f->at += n;
	return (ssize_t)n;
}

static int write_flow(void *arg, const unsigned char *bytes, size_t len)
{
	buf_append(&((struct flow *)arg)->out, bytes, len);
	return 0;
}

static void compare_with_zlib(const uint8_t *data, size_t size)
{
	struct flow f = {.at = data, .end = data + size};
	const struct deflate_io io = {read_flow, write_flow, &f};
	unsigned char *expected = malloc(EXPANDED_MAX);
	z_stream z = {.next_in = data, .avail_in = (unsigned)size};
	if (!expected || inflateInit2(&z, -15) != Z_OK)
		abort();
	z.next_out = expected;
	z.avail_out = EXPANDED_MAX;
	int theirs = inflate(&z, Z_FINISH);
	int ours = deflate_expand(&io, EXPANDED_MAX);
	if ((theirs == Z_STREAM_END) != (ours == 0))
		abort();
	if (ours == 0 && (f.out.len != z.total_out ||
				 (f.out.len && memcmp(f.out.data, expected, f.out.len) != 0)))
		abort();
	inflateEnd(&z);
	free(expected);
	buf_finish(&f.out);
}

/* ---- the directory ---- */

struct image {
	const uint8_t *data;
	size_t size;
};

static int read_image(void *arg, uint64_t at, void *bytes, size_t len)
{
	const struct image *image = arg;
	if (at > image->size || len > image->size - at)
		abort(); /* it has promised to stay inside */
	memcpy(bytes, image->data + at, len);
	return 0;
}

/* How many entries; -1: it is no archive. */
static long read_directory(const uint8_t *data, size_t size)
{
	struct image image = {data, size};
	struct zip_reader z = {.read_at = read_image, .arg = &image, .size = size};
	long count = 0;
	uint64_t at;
	int r = zip_open(&z);
	while (r >= 0 && (r = zip_next(&z)) > 0) {
		if (strlen(z.entry.name.data) + 1 != z.entry.name.len)
			abort();
		if (zip_find_content(&z, &at) == 0 && (at > size || z.entry.packed > size - at))
			abort();
		count++;
	}
	zip_reader_finish(&z);
	return r < 0 ? -1 : count;
}

/* ---- tar to zip ---- */

static void convert(const uint8_t *data, size_t size)
{
	struct buf out = {0};
	struct error e;
	struct zip_writer *z = zip_writer_new();
	const char *at = (const char *)data;
	size_t left = size, before;
	int r;
	do {
		before = out.len;
		r = zip_writer_step(z, &at, &left, 1000, &out, &e);
	} while (r == 0 && (left > 0 || out.len > before));
	while (r == 0 && (r = zip_writer_finish(z, 100, &out, &e)) == 0)
		;
	if (r > 0 && read_directory((const uint8_t *)out.data, out.len) < 0)
		abort();
	zip_writer_free(z);
	buf_finish(&out);
}

/* No mutation finds a checksum by chance: each block gets the one it should have. */
static void fix_checksums(uint8_t *data, size_t size)
{
	for (; size >= TAR_BLOCK; data += TAR_BLOCK, size -= TAR_BLOCK) {
		unsigned sum = 8 * ' ';
		char text[8];
		for (size_t i = 0; i < TAR_BLOCK; i++)
			sum += i < 148 || i >= 156 ? data[i] : 0;
		snprintf(text, sizeof text, "%06o", sum);
		if (sum != 8 * ' ')
			memcpy(data + 148, text, sizeof text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] % 3 == 0)
		compare_with_zlib(data + 1, size - 1);
	else if (data[0] % 3 == 1)
		read_directory(data + 1, size - 1);
	else {
		uint8_t *copy = malloc(size);
		memcpy(copy, data + 1, size - 1);
		fix_checksums(copy, size - 1);
		convert(copy, size - 1);
		free(copy);
	}
	return 0;
}
