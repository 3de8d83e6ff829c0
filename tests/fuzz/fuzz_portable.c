/*
 * A sandbox as JSON, from arbitrary bytes: read in one piece and in small ones, which must come to
 * the same end and the same archive; and that archive must be one.
 *
 * fuzz-sources: src/base/tar_push.c src/json/push.c src/json/line.c
 *
 * fuzz-sources: src/image/portable_entry.c
 *
 * fuzz-sources: src/image/portable_paths.c src/image/portable_read.c
 *
 * clang -fsanitize=fuzzer,address,undefined; libFuzzer finds LLVMFuzzerTestOneInput.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/tar_push.h"
#include "image/portable.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static int read_all(const char *text, size_t len, size_t step, struct buf *tar)
{
	struct error e;
	struct portable_reader *r = portable_reader_new();
	int result = PORTABLE_MORE;
	for (size_t at = 0; result >= 0 && result != PORTABLE_DONE;) {
		result = portable_read(r, tar, SIZE_MAX, &e);
		if (result != PORTABLE_MORE)
			continue;
		size_t n = len - at < step ? len - at : step;
		if (n == 0)
			portable_reader_end(r);
		portable_reader_add(r, text + at, n);
		at += n;
	}
	portable_reader_free(r);
	return result;
}

/* Names stay below the top, and every member is complete. */
static void check_archive(const struct buf *tar)
{
	struct tar_push p = {0};
	int step;
	tar_push_add(&p, tar->data, tar->len);
	while ((step = tar_push_step(&p)) != TAR_END) {
		if (step <= TAR_MORE)
			abort();
		if (step == TAR_MEMBER && !tar_clean_path(p.reader.member.path.data))
			abort();
	}
	tar_push_finish(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	autobuf one = {0}, other = {0};
	if (size == 0)
		return 0;
	const char *text = (const char *)input + 1;
	int a = read_all(text, size - 1, size, &one);
	int b = read_all(text, size - 1, 1 + input[0] % 16, &other);
	if (a != b)
		abort();
	if (a < 0)
		return 0;
	/* Times of what has none are those of the reading. */
	if (one.len != other.len)
		abort();
	check_archive(&one);
	return 0;
}
