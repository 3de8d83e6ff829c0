/* Both directions of the frame decoder: nothing is read beyond the bytes there are, and what
 * decodes encodes again. */
#include <stdlib.h>
#include <string.h>

#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_start(const char *payload, size_t size, uint64_t tag)
{
	struct start_request request;
	struct buf again = {0};
	if (frame_decode_start(payload, size, &request) < 0)
		return;
	if (frame_encode_start(&again, tag, &request) == 0 &&
		(again.len != FRAME_HEADER_SIZE + size ||
			memcmp(again.data + FRAME_HEADER_SIZE, payload, size) != 0))
		abort();
	buf_finish(&again);
	start_request_finish(&request);
}

static volatile size_t sink;

static void read_string(const char *s)
{
	sink += strlen(s);
}

static void check_strings(const struct process_frame *r)
{
	read_string(r->user);
	read_string(r->cwd);
	read_string(r->name);
	if (r->command_len > 0 && r->command[r->command_len - 1] != '\0')
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of exactly this size, so that the sanitizer sees the first byte too many. */
	char *copy = malloc(size ? size : 1);
	size_t at = 0;
	memcpy(copy, data, size);
	check_start(copy, size, 1);
	for (;;) {
		struct frame_header h;
		struct frame_exit exit;
		struct frame_started started;
		struct frame_status status;
		struct process_frame record;
		const char *cwd;
		int64_t used = frame_decode(copy + at, size - at, &h);
		if (used <= 0)
			break;
		const char *payload = copy + at + FRAME_HEADER_SIZE;
		if (h.type == FRAME_START)
			check_start(payload, h.size, h.tag);
		if (frame_decode_process(payload, h.size, &record) == 0)
			check_strings(&record);
		if (frame_decode_status(payload, h.size, &status, &cwd) == 0)
			read_string(cwd);
		frame_payload(&h, payload, &exit, sizeof exit);
		frame_payload(&h, payload, &started, sizeof started);
		at += (size_t)used;
	}
	free(copy);
	return 0;
}
