/*
 * What a sandbox sends first: a ClientHello, a request, or neither. Whatever comes, a name is one,
 * more bytes do not change what was said of the first ones, and a head ends where it ends.
 *
 * fuzz-sources: src/egress/hello.c src/egress/first.c src/stream/request.c
 */
#include <stdlib.h>
#include <string.h>

#include "egress/first.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const char *name)
{
	char again[FIRST_NAME_SIZE];
	if (name[0] && (!request_settle_name((const uint8_t *)name, strlen(name), again) ||
			       strcmp(name, again) != 0))
		abort();
}

static void check_hello(const uint8_t *data, size_t size)
{
	char name[FIRST_NAME_SIZE], part[FIRST_NAME_SIZE];
	int whole = hello_read(data, size, name);
	if (whole > 0)
		check_name(name);
	for (size_t len = 0; len < size && size < 2048; len += 1 + size / 16) {
		int r = hello_read(data, len, part);
		if (r != 0 && (r != whole || (r > 0 && strcmp(name, part) != 0)))
			abort();
	}
}

static void check_request(const uint8_t *data, size_t size)
{
	struct request whole, part;
	int n = request_read(data, size, &whole);
	if (n > (int)size || n > REQUEST_MAX)
		abort();
	if (n <= 0)
		return;
	if (whole.is_name)
		check_name(whole.host);
	if (memcmp(data + n - 4, "\r\n\r\n", 4) != 0 || first_look(data, size) != FIRST_HTTP)
		abort();
	if (request_read(data, (size_t)n - 1, &part) > 0)
		abort();
}

/* In two pieces a body ends where it ends in one. */
static void check_chunks(const uint8_t *data, size_t size)
{
	struct chunks one = {0}, two = {0};
	ptrdiff_t n = chunks_pass(&one, data, size), first = chunks_pass(&two, data, size / 2);
	ptrdiff_t second =
		first < 0 || two.ended ? 0 : chunks_pass(&two, data + first, size - (size_t)first);
	if (n > (ptrdiff_t)size || (n >= 0) != (first >= 0 && second >= 0) ||
		(n >= 0 && (n != first + second || one.ended != two.ended)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	first_look(data, size);
	check_hello(data, size);
	check_request(data, size);
	check_chunks(data, size);
	return 0;
}
