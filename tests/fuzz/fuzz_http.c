/*
 * Heads of requests and answers, targets and chunked bodies from arbitrary bytes. The first two
 * bytes say where the rest is cut in two; the outcome must be the same as without the cut.
 *
 * clang -fsanitize=fuzzer,address,undefined; libFuzzer finds LLVMFuzzerTestOneInput.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "http/parser.h"
#include "http/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

struct outcome {
	enum error_code code;
	size_t used;
	struct http_head head;
	struct buf body;
};

static bool take_head(struct outcome *o, const char *data, size_t len, size_t cut)
{
	struct http_head_scan scan = {0};
	struct error e = {0};
	int r = http_scan_head(&scan, data, cut, &e);
	if (r == 0)
		r = http_scan_head(&scan, data, len, &e);
	o->used = scan.at;
	if (r > 0) {
		autofree char *text = malloc(scan.at);
		memcpy(text, data, scan.at);
		r = http_parse_head(text, scan.at, &o->head, &e);
		if (r == 0) {
			struct http_target target;
			autofree char *copy = strdup(o->head.target);
			http_split_target(copy, &target, &e);
			r = 1;
		}
	}
	o->code = r < 0 ? e.code : ERROR_NONE;
	return r > 0;
}

/* The same bytes as the head of an answer, which must have a status that three digits can say. */
static void take_answer(const char *data, size_t len)
{
	struct http_head_scan scan = {0};
	struct http_head head;
	struct error e = {0};
	int status = 0;
	if (http_scan_head(&scan, data, len, &e) <= 0)
		return;
	autofree char *text = malloc(scan.at);
	memcpy(text, data, scan.at);
	if (http_parse_answer(text, scan.at, &head, &status, &e) < 0)
		return;
	if (status < 100 || status > 999 || (head.chunked && http_head_has_length(&head)))
		abort();
	for (size_t i = 0; i < head.field_count; i++)
		if (!http_head_field(&head, head.fields[i].name))
			abort();
	http_head_has_token(&head, "Connection", "close");
}

static void take_chunks(struct outcome *o, const char *data, size_t len, size_t cut)
{
	struct http_chunks chunks = {0};
	size_t start = o->used;
	while (o->used < len && chunks.state != HTTP_CHUNK_DONE) {
		struct http_piece piece;
		struct error e;
		size_t end = o->used < cut ? cut : len;
		ptrdiff_t n = http_take_chunk(&chunks, data + o->used, end - o->used, &piece, &e);
		if (n < 0) {
			o->code = e.code;
			return;
		}
		if (n == 0)
			abort();
		buf_append(&o->body, piece.data, piece.len);
		o->used += (size_t)n;
	}
	if (o->body.len > len - start)
		abort();
}

static void run(struct outcome *o, const char *data, size_t len, size_t cut)
{
	*o = (struct outcome){0};
	if (take_head(o, data, len, cut) && o->head.chunked)
		take_chunks(o, data, len, cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static struct outcome whole, split;
	if (size < 3)
		return 0;
	size_t len = size - 2;
	size_t cut = ((size_t)input[0] << 8 | input[1]) % (len + 1);
	const char *data = (const char *)input + 2;
	take_answer(data, len);
	run(&whole, data, len, len);
	run(&split, data, len, cut);
	bool refused = whole.code != ERROR_NONE;
	if (whole.code != split.code || (!refused && whole.used != split.used) ||
		(!refused && whole.body.len != split.body.len) ||
		whole.head.field_count != split.head.field_count ||
		whole.head.content_length != split.head.content_length ||
		(!refused && whole.body.len > 0 &&
			memcmp(whole.body.data, split.body.data, whole.body.len) != 0))
		abort();
	buf_finish(&whole.body);
	buf_finish(&split.body);
	return 0;
}
