/*
 * A request head that goes on with what rules add: the first half of the input is entries as the
 * front packs them, the second a head as a sandbox sends it. Whatever comes, what goes on is one
 * head, for the same host and with the same body, and has each header of the rules once.
 *
 * fuzz-sources: src/broker/entries.c src/broker/rewrite.c src/stream/request.c
 */
#include <stdlib.h>
#include <string.h>

#include "broker/rewrite.h"
#include "stream/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned count_fields(const struct buf *head, const char *name)
{
	struct request_field f;
	size_t at = 0;
	unsigned count = 0;
	while (request_next_field((const uint8_t *)head->data, head->len, &at, &f))
		count += request_field_is(&f, name);
	return count;
}

static unsigned count_headers(const struct entries_host *host, const char *name, bool is_tls)
{
	const struct request_field field = {.name = name, .name_len = strlen(name)};
	unsigned count = 0;
	for (unsigned i = 0; i < host->header_count; i++)
		count += (is_tls || !host->headers[i].tls_only) &&
			 request_field_is(&field, host->headers[i].name);
	return count;
}

/* With all that was added it may be longer than a head that the parser takes. */
static void check_whole(const struct buf *out, const struct request *before)
{
	struct request after;
	int n = request_read((const uint8_t *)out->data, out->len, &after);
	if (out->len <= REQUEST_MAX &&
		(n != (int)out->len || strcmp(after.host, before->host) != 0 ||
			after.length != before->length || after.is_chunked != before->is_chunked ||
			after.upgrades != before->upgrades))
		abort();
}

static void check_host(
	const struct entries_host *host, const uint8_t *head, size_t len, bool is_tls)
{
	struct request before;
	autobuf out = {0};
	int n = request_read(head, len, &before);
	if (n <= 0)
		return;
	if (rewrite_head(&out, head, (size_t)n, host, is_tls) < 0) {
		if (out.len > 0)
			abort();
		return;
	}
	check_whole(&out, &before);
	for (unsigned i = 0; i < host->header_count; i++)
		if ((is_tls || !host->headers[i].tls_only) &&
			count_fields(&out, host->headers[i].name) !=
				count_headers(host, host->headers[i].name, is_tls))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct entries entries;
	size_t half = size >= 2 ? (size_t)(data[0] << 8 | data[1]) : 0;
	if (size < 2 || half > size - 2)
		return 0;
	uint8_t *packed = malloc(half + 1);
	if (!packed)
		return 0;
	memcpy(packed, data + 2, half);
	if (entries_init(&entries, packed, half) < 0)
		return 0;
	for (unsigned i = 0; i < entries.host_count; i++)
		for (int is_tls = 0; is_tls < 2; is_tls++)
			check_host(&entries.hosts[i], data + 2 + half, size - 2 - half, is_tls);
	entries_find(&entries, "a.b.test");
	entries_finish(&entries);
	return 0;
}
