/* Records from a file worker, as the front takes them apart: nothing is read beyond the bytes there
 * are, and every text lies within its payload. */
#include <stdlib.h>
#include <string.h>

#include "wire/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_texts(const char *payload, size_t size, const struct record_text *t, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (t[i].len > 0 && (t[i].data < payload || t[i].data + t[i].len > payload + size))
			abort();
}

static void check_request(const char *payload, size_t size)
{
	struct file_request r;
	struct buf again = {0};
	if (record_decode_request(payload, size, &r) < 0)
		return;
	if (record_append_request(&again, &r) == 0 &&
		(again.len != RECORD_HEADER_SIZE + size ||
			memcmp(again.data + RECORD_HEADER_SIZE, payload, size) != 0))
		abort();
	buf_finish(&again);
}

static void check_payload(const char *payload, size_t size)
{
	struct record_text t[4];
	struct record_file file;
	struct record_attribute attribute;
	struct record_entry entry;
	struct record_content content;
	struct record_match match;
	struct record_change change;
	struct record_event event;
	struct record_end end;
	check_request(payload, size);
	record_decode_content(payload, size, &content);
	if (record_decode_file(payload, size, &file, t) == 0)
		check_texts(payload, size, t, 2);
	if (record_decode_attribute(payload, size, &attribute, t) == 0)
		check_texts(payload, size, t, 2);
	if (record_decode_entry(payload, size, &entry, t) == 0)
		check_texts(payload, size, t, 4);
	if (record_decode_match(payload, size, &match, t) == 0)
		check_texts(payload, size, t, 2);
	if (record_decode_change(payload, size, &change, t) == 0)
		check_texts(payload, size, t, 1);
	if (record_decode_event(payload, size, &event, t) == 0)
		check_texts(payload, size, t, 2);
	if (record_decode_end(payload, size, &end, t) == 0)
		check_texts(payload, size, t, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of exactly this size, so that the sanitizer sees the first byte too many. */
	char *copy = malloc(size ? size : 1);
	size_t at = 0;
	memcpy(copy, data, size);
	check_payload(copy, size);
	while (size - at >= RECORD_HEADER_SIZE) {
		struct record_header h;
		if (record_decode_header(copy + at, &h) < 0 ||
			h.size > size - at - RECORD_HEADER_SIZE)
			break;
		at += RECORD_HEADER_SIZE;
		check_payload(copy + at, (size_t)h.size);
		at += (size_t)h.size;
	}
	free(copy);
	return 0;
}
