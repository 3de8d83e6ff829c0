/*
 * What an interpreter writes, from arbitrary bytes: however they are cut into pieces, the same
 * messages come out, the fields lie within what was sent, and memory is given back. JSON that is
 * passed on as a line is JSON for the parser, too.
 *
 * clang -fsanitize=fuzzer,address,undefined; libFuzzer finds LLVMFuzzerTestOneInput.
 * fuzz-sources: src/json/line.c src/box/code/code_message.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "box/code/code_core.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static const char key[] = "0123456789abcdef0123456789abcdef";

/* Folds everything that was told into one number. */
static uint64_t read_all(const char *data, size_t len, size_t piece)
{
	size_t charged = 0;
	uint64_t hash = 14695981039346656037u;
	struct code_message m = {.charged = &charged};
	for (size_t at = 0; at < len;) {
		size_t part = len - at < piece ? len - at : piece;
		bool left_out = false;
		size_t used = code_message_feed(&m, key, data + at, part, &left_out);
		if (used == 0 || used > part)
			abort();
		if (m.state == CODE_MESSAGE_WHOLE)
			for (size_t i = 0; i < m.field_count; i++)
				for (size_t j = 0; j < m.fields[i].len; j++)
					hash = (hash ^ (uint8_t)m.fields[i].data[j]) *
					       1099511628211u;
		hash += m.state == CODE_MESSAGE_WHOLE;
		at += used;
	}
	code_message_reset(&m);
	if (charged != 0)
		abort();
	return hash;
}

/* A '#' in the input stands for the begin of a message, which nobody would guess. */
static void expand(const uint8_t *input, size_t size, struct buf *out)
{
	for (size_t i = 0; i < size; i++) {
		if (input[i] == '#')
			buf_printf(out, "\n%s ", key);
		else
			buf_append_char(out, (char)input[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct buf stream = {0}, ascii = {0};
	cJSON *tree = NULL;
	expand(input, size, &stream);
	uint64_t whole = read_all(stream.data, stream.len, stream.len ? stream.len : 1);
	for (size_t piece = 1; piece < 8; piece++)
		if (read_all(stream.data, stream.len, piece) != whole)
			abort();
	const char *text = (const char *)input;
	if (json_is_line(text, size)) {
		const char *end = NULL;
		tree = cJSON_ParseWithLengthOpts(text, size, &end, false);
		json_append_ascii(&ascii, text, size);
		/* Escapes of half a character, or of NUL, are JSON, but not for cJSON. */
		if ((!tree && !memmem(text, size, "\\u", 2)) ||
			!json_is_line(ascii.data, ascii.len))
			abort();
	}
	cJSON_Delete(tree);
	buf_finish(&stream);
	buf_finish(&ascii);
	return 0;
}
