/*
 * DNS from both sides: a client's question, and what a resolver answers to one. Whatever comes,
 * what is written fits, repeats the question, and has no address in it that was not to be kept.
 *
 * fuzz-sources: src/base/address.c src/egress/dns_message.c
 */
#include <stdlib.h>
#include <string.h>

#include "egress/dns_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool keeps_even(void *arg, const struct address *a)
{
	(void)arg;
	return a->bytes[15] % 2 == 0;
}

static void check_question(const uint8_t *data, size_t size)
{
	struct dns_question q;
	uint8_t query[DNS_QUERY_MAX];
	if (dns_read_question(data, size, &q) < 0)
		return;
	size_t len = dns_write_query(&q, 7, query);
	struct dns_question again;
	if (len > sizeof query || dns_read_question(query, len, &again) < 0 ||
		again.type != q.type || strcmp(again.text, q.text) != 0 ||
		again.room != DNS_UDP_MAX)
		abort();
}

static void check_answer(const uint8_t *data, size_t size, const char *name, uint16_t type)
{
	static uint8_t out[DNS_ANSWER_MAX], told[DNS_ANSWER_MAX];
	struct dns_question q;
	bool truncated;
	if (dns_make_question(name, type, &q) < 0)
		abort();
	dns_is_answer(data, size, &q, 7, &truncated);
	size_t room = size % 2 ? sizeof out : 512;
	size_t len = dns_write_answer(&q, data, size, keeps_even, NULL, out, room);
	if (len > room || (len > 0 && len < 12 + q.name_len + 4))
		abort();
	/* What we write is an answer to the question, and none of it is taken out a second time. */
	if (len > 0 && (!dns_is_answer(out, len, &q, q.id, &truncated) ||
			       (!truncated && dns_write_answer(&q, out, len, keeps_even, NULL, told,
						      sizeof told) != len)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_question(data, size);
	check_answer(data, size, "web.test", DNS_A);
	check_answer(data, size, "web.test", DNS_AAAA);
	check_answer(data, size, "web.test", 16);
	return 0;
}
