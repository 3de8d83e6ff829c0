/*
 * JSON from arbitrary bytes: parse, decode by a table with every kind of field, and write every
 * string back: what the writer makes of it must parse to the same string.
 *
 * fuzz-sources: src/json/push.c
 *
 * clang -fsanitize=fuzzer,address,undefined; libFuzzer finds LLVMFuzzerTestOneInput.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "json/json.h"
#include "json/push.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

struct all {
	const char *s;
	bool b;
	int64_t i, d, z, c;
	const cJSON *o, *a, *m, *x;
};

static const struct json_field fields[] = {
	{"s", FIELD_TEXT, offsetof(struct all, s), FIELD_NOT_EMPTY, 0, 100},
	{"b", FIELD_BOOL, offsetof(struct all, b)},
	{"i", FIELD_INTEGER, offsetof(struct all, i), 0, -10, 1000},
	{"d", FIELD_DURATION, offsetof(struct all, d), FIELD_REQUIRED},
	{"z", FIELD_BYTES, offsetof(struct all, z)},
	{"c", FIELD_CPU, offsetof(struct all, c)},
	{"o", FIELD_OBJECT, offsetof(struct all, o)},
	{"a", FIELD_ARRAY, offsetof(struct all, a), FIELD_NOT_EMPTY, 0, 3},
	{"m", FIELD_STRING_MAP, offsetof(struct all, m)},
	{"x", FIELD_ANY, offsetof(struct all, x)},
};

static cJSON *reparse(struct buf *text)
{
	cJSON *tree = NULL;
	struct error e;
	if (text->failed || json_parse(text->data, text->len, &tree, &e) < 0)
		abort();
	return tree;
}

static void write_back(const cJSON *item)
{
	if (cJSON_IsString(item)) {
		autobuf out = {0};
		struct json_writer w = {.out = &out};
		json_string(&w, item->valuestring);
		cJSON *again = reparse(&out);
		if (strcmp(again->valuestring, item->valuestring) != 0)
			abort();
		cJSON_Delete(again);
	}
	for (const cJSON *child = item->child; child; child = child->next)
		write_back(child);
}

/* Whatever the bytes, a string of them is JSON. */
static void write_raw(const uint8_t *input, size_t size)
{
	autobuf out = {0};
	struct json_writer w = {.out = &out};
	json_begin_array(&w);
	json_string_n(&w, (const char *)input, size);
	json_base64(&w, input, size);
	json_end_array(&w);
	/* NUL is written, but not read. */
	if (!memchr(input, 0, size))
		cJSON_Delete(reparse(&out));
}

/* Text that comes byte by byte is taken or refused as it is in one piece. */
static void check_pieces(const char *text, size_t size)
{
	struct json_scan whole = {.text = text, .len = size, .last = true, .max_depth = 16};
	struct json_push push = {0};
	struct error e;
	int token, pushed = JSON_MORE;
	bool long_key = false;
	do {
		token = json_scan(&whole);
		long_key = long_key || (whole.in_key && whole.raw_len > JSON_PUSH_KEY_MAX);
	} while (token > 0 && token != JSON_DONE);
	for (size_t i = 0; i < size && pushed >= 0; i++) {
		json_push_add(&push, text + i, 1);
		do {
			pushed = json_push_step(&push, &e);
		} while (pushed > 0 && pushed != JSON_DONE);
	}
	json_push_end(&push);
	while (pushed >= 0 && pushed != JSON_DONE)
		pushed = json_push_step(&push, &e);
	if (!long_key && (token < 0) != (pushed < 0))
		abort();
	json_push_finish(&push);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	cJSON *tree = NULL;
	struct error e;
	struct all all = {0};
	check_pieces((const char *)input, size);
	int r = json_parse((const char *)input, size, &tree, &e);
	/* What the scanner takes, cJSON takes. */
	if (r < 0 && e.code == ERROR_RESOURCE_EXHAUSTED)
		abort();
	if (r == 0) {
		json_decode(tree, fields, ARRAY_LEN(fields), "", &all, &e);
		write_back(tree);
		cJSON_Delete(tree);
	}
	write_raw(input, size);
	return 0;
}
