/*
 * Images from arbitrary bytes: the first one says as what the rest is read. Every parser of what an
 * image says about itself, and the decompression, in small pieces. What is accepted must be bounded
 * and stay inside.
 *
 * clang -fsanitize=fuzzer,address,undefined; libFuzzer finds LLVMFuzzerTestOneInput.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/inflate.h"
#include "image/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static void check_blob(const struct image_blob *blob)
{
	char inside[IMAGE_PATH_MAX + 3];
	if (!blob->path || blob->path[0] == '/' || strlen(blob->path) > IMAGE_PATH_MAX)
		abort();
	snprintf(inside, sizeof inside, "/%s/", blob->path);
	if (strstr(inside, "/../") || strstr(inside, "//"))
		abort();
}

static void check_document(const struct image_document *d)
{
	if (d->kind == IMAGE_INDEX) {
		check_blob(&d->next);
		return;
	}
	check_blob(&d->config);
	if (d->layer_count > IMAGE_LAYERS_MAX)
		abort();
	for (size_t i = 0; i < d->layer_count; i++)
		check_blob(&d->layers[i]);
}

static void read_config(const char *text, size_t len, struct scratch *memory)
{
	struct image_document d = {.kind = IMAGE_MANIFEST, .layer_count = 1};
	struct image_config c;
	struct error e;
	d.layers = scratch_alloc(memory, sizeof *d.layers);
	if (image_parse_config(text, len, memory, &d, &c, &e) < 0)
		return;
	if (strlen(d.layers[0].plain.hex) != IMAGE_HEX_LEN)
		abort();
	for (const char *const *v = c.env; *v; v++)
		if (!strchr(*v, '='))
			abort();
}

static void expand(const char *data, size_t len)
{
	struct inflate *i = inflate_new();
	struct error e;
	size_t total = 0, before;
	int r = 0;
	while (len > 0 && r == 0 && total < 1 << 20) {
		size_t piece = len < 100 ? len : 100, left = piece;
		const char *at = data;
		do {
			autobuf out = {0};
			before = total;
			r = inflate_step(i, &at, &left, 1000, &out, &e);
			if (out.len > 1000)
				abort();
			total += out.len;
		} while (r == 0 && total < 1 << 20 && (left > 0 || total > before));
		data += piece;
		len -= piece;
	}
	inflate_end(i, &e);
	inflate_free(i);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	autoscratch memory = {0};
	struct image_document d;
	struct error e;
	const char *text = (const char *)input + 1;
	if (size == 0)
		return 0;
	switch (input[0] % 4) {
	case 0:
		if (image_parse_document(text, size - 1, NULL, &memory, &d, &e) == 0)
			check_document(&d);
		break;
	case 1:
		if (image_parse_docker(text, size - 1, NULL, &memory, &d, &e) == 0)
			check_document(&d);
		break;
	case 2:
		read_config(text, size - 1, &memory);
		break;
	default:
		expand(text, size - 1);
	}
	return 0;
}
