/*
 * Streams of envelopes in whatever pieces: the first byte says how they are cut. The result must
 * not depend on it, and no message may be taken that is longer than what came.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "dialect/e2b/envelope.h"

struct outcome {
	unsigned messages;
	int last;
	size_t left;
};

static struct outcome take_all(const uint8_t *data, size_t size, size_t piece)
{
	struct outcome o = {0};
	struct error e = {0};
	autobuf in = {0};
	for (size_t at = 0; at < size && o.last >= 0; at += piece) {
		buf_append(&in, data + at, size - at < piece ? size - at : piece);
		cJSON *message = NULL;
		while ((o.last = envelope_take(&in, &message, &e)) > 0) {
			assert(cJSON_IsObject(message));
			cJSON_Delete(message);
			o.messages++;
		}
	}
	o.left = o.last < 0 ? 0 : in.len;
	return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	struct outcome whole = take_all(data + 1, size - 1, size);
	struct outcome pieces = take_all(data + 1, size - 1, (size_t)data[0] + 1);
	assert(whole.messages == pieces.messages && whole.left == pieces.left);
	assert((whole.last < 0) == (pieces.last < 0));
	return 0;
}
