/*
 * DNS messages, as far as a forwarder needs them: a question is read from a client and asked anew
 * in our own words, and what comes back is checked against it and told in our own words, too. No
 * byte of a client's message goes upstream but the name and the type it asks for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"

#define DNS_NAME_MAX   255 /* bytes of a name, as messages have it */
#define DNS_TEXT_SIZE  256
#define DNS_QUERY_MAX  (12 + DNS_NAME_MAX + 4 + 11)
#define DNS_ANSWER_MAX 65535
#define DNS_UDP_MAX    1232 /* that we take, and that we send at most */

enum dns_type {
	DNS_A = 1,
	DNS_CNAME = 5,
	DNS_AAAA = 28,
	DNS_OPT = 41,
	DNS_SVCB = 64,
	DNS_HTTPS = 65,
	DNS_TRANSFERS = 251, /* this and those up to ANY ask for more than records of a type */
	DNS_ANY = 255
};

enum dns_code {
	DNS_NO_ERROR = 0,
	DNS_FORMAT_ERROR = 1,
	DNS_SERVER_FAILURE = 2,
	DNS_NO_NAME = 3,
	DNS_NOT_IMPLEMENTED = 4,
	DNS_REFUSED = 5
};

struct dns_question {
	uint16_t id, type;
	uint16_t room;              /* that the client has for an answer by UDP */
	uint8_t name[DNS_NAME_MAX]; /* as the client wrote it */
	size_t name_len;
	char text[DNS_TEXT_SIZE]; /* in lower case, with dots, without the last one */
};

/* Returns -EINVAL if malformed, or if it is no plain question: then q->id may be answered. */
int dns_read_question(const uint8_t *message, size_t len, struct dns_question *q);
/* Makes a question of a name. Returns -EINVAL if it is none. */
int dns_make_question(const char *name, uint16_t type, struct dns_question *q);
size_t dns_write_query(const struct dns_question *q, uint16_t id, uint8_t out[DNS_QUERY_MAX]);

/* Whether this is the answer to that query; *truncated: ask again by TCP. */
bool dns_is_answer(const uint8_t *message, size_t len, const struct dns_question *q, uint16_t id,
	bool *truncated);

/*
 * Writes for the client what an upstream answer says. Of addresses only those that `keeps` takes
 * are told. Returns the length; what does not fit into `size` is left out and the answer says so.
 * Returns 0 if the upstream answer is malformed.
 */
size_t dns_write_answer(const struct dns_question *q, const uint8_t *message, size_t len,
	bool (*keeps)(void *arg, const struct address *a), void *arg, uint8_t *out, size_t size);
/* Writes an answer without records. */
size_t dns_write_code(const struct dns_question *q, enum dns_code code, uint8_t *out, size_t size);
