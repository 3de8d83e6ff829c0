/* The ClientHello of TLS 1.0 to 1.3, in as many records as the client likes, up to HELLO_MAX. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "egress/first.h"

#define RECORD_HEAD      5
#define RECORD_HANDSHAKE 22
#define RECORD_SIZE_MAX  16384
#define HANDSHAKE_HEAD   4
#define CLIENT_HELLO     1
#define SERVER_NAME      0
#define HOST_NAME        0

/* What is left to be read; reading more than there is marks it bad. */
struct reader {
	const uint8_t *at, *end;
	bool bad;
};

static size_t reader_number(struct reader *r, size_t bytes)
{
	size_t value = 0;
	if (r->bad || (size_t)(r->end - r->at) < bytes) {
		r->bad = true;
		return 0;
	}
	for (; bytes > 0; bytes--)
		value = value << 8 | *r->at++;
	return value;
}

/* A part with its length in front. */
static struct reader reader_part(struct reader *r, size_t length_bytes)
{
	size_t len = reader_number(r, length_bytes);
	if (r->bad || (size_t)(r->end - r->at) < len) {
		r->bad = true;
		return (struct reader){r->end, r->end, true};
	}
	r->at += len;
	return (struct reader){r->at - len, r->at, false};
}

static bool reader_is_empty(const struct reader *r)
{
	return r->at == r->end;
}

/* A list of names, of which there is one. An address is no name: RFC 6066. */
static int read_server_name(struct reader extension, char name[FIRST_NAME_SIZE])
{
	struct reader list = reader_part(&extension, 2);
	size_t type = reader_number(&list, 1);
	struct reader text = reader_part(&list, 2);
	if (list.bad || !reader_is_empty(&extension) || !reader_is_empty(&list) ||
		type != HOST_NAME)
		return -EINVAL;
	return request_settle_name(text.at, (size_t)(text.end - text.at), name) ? 0 : -EINVAL;
}

static int read_extensions(struct reader hello, char name[FIRST_NAME_SIZE])
{
	bool seen = false;
	if (reader_is_empty(&hello))
		return 1;
	struct reader all = reader_part(&hello, 2);
	if (all.bad || !reader_is_empty(&hello))
		return -EINVAL;
	while (!reader_is_empty(&all)) {
		size_t type = reader_number(&all, 2);
		struct reader extension = reader_part(&all, 2);
		if (all.bad)
			return -EINVAL;
		if (type != SERVER_NAME)
			continue;
		if (seen || read_server_name(extension, name) < 0)
			return -EINVAL;
		seen = true;
	}
	return 1;
}

static int read_hello(const uint8_t *data, size_t len, char name[FIRST_NAME_SIZE])
{
	struct reader r = {data, data + len, false};
	reader_number(&r, 2); /* version */
	for (int i = 0; i < 32 / 4; i++)
		reader_number(&r, 4); /* random */
	reader_part(&r, 1);           /* session */
	reader_part(&r, 2);           /* ciphers */
	reader_part(&r, 1);           /* compression */
	return r.bad ? -EINVAL : read_extensions(r, name);
}

int hello_read(const uint8_t *data, size_t len, char name[FIRST_NAME_SIZE])
{
	static uint8_t joined[HELLO_MAX];
	size_t at = 0, have = 0;
	name[0] = '\0';
	for (;;) {
		size_t wanted = HANDSHAKE_HEAD;
		if (have >= HANDSHAKE_HEAD) {
			wanted += (size_t)joined[1] << 16 | (size_t)joined[2] << 8 | joined[3];
			if (joined[0] != CLIENT_HELLO || wanted > sizeof joined)
				return -EINVAL;
			if (have >= wanted)
				return read_hello(
					joined + HANDSHAKE_HEAD, wanted - HANDSHAKE_HEAD, name);
		}
		if ((at < len && data[at] != RECORD_HANDSHAKE) ||
			(at + 1 < len && data[at + 1] != 3))
			return -EINVAL;
		if (len - at < RECORD_HEAD)
			return 0;
		size_t size = (size_t)(data[at + 3] << 8 | data[at + 4]);
		size_t here = len - at - RECORD_HEAD;
		if (size == 0 || size > RECORD_SIZE_MAX)
			return -EINVAL;
		size_t take = size < here ? size : here;
		if (take > sizeof joined - have)
			take = sizeof joined - have;
		memcpy(joined + have, data + at + RECORD_HEAD, take);
		have += take;
		if (here < size && have < wanted)
			return have == sizeof joined ? -EINVAL : 0;
		at += RECORD_HEAD + (size < here ? size : here);
		if (have == sizeof joined && have < wanted)
			return -EINVAL;
	}
}
