/* Internet addresses as egress and its settings need them: parsed, compared, classified. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_TEXT_SIZE 56 /* an address or a range */

/* IPv4 is kept in its IPv6 form, ::ffff:a.b.c.d, so that there is one kind only. */
struct address {
	uint8_t bytes[16];
};

struct address_range {
	struct address first;
	uint8_t bits; /* of 128 */
};

struct address_port {
	struct address address;
	uint16_t port;
};

enum address_class {
	ADDRESS_GLOBAL,
	ADDRESS_LOCAL, /* private, shared, documentation: reached only where the operator said so */
	ADDRESS_NEVER  /* loopback, link-local, metadata, multicast, reserved: never reached */
};

bool address_is_v4(const struct address *a);
bool address_is_loopback(const struct address *a);
/* Returns -EINVAL if malformed, as the next two do. */
int address_parse(const char *text, struct address *ret);
/* "10.0.0.0/8", or a single address. Bits behind the prefix must be 0. */
int address_parse_range(const char *text, struct address_range *ret);
/* "192.0.2.1", "192.0.2.1:5353", "2001:db8::1" or "[2001:db8::1]:5353". */
int address_parse_port(const char *text, uint16_t port, struct address_port *ret);
void address_format(const struct address *a, char out[ADDRESS_TEXT_SIZE]);
void address_format_range(const struct address_range *r, char out[ADDRESS_TEXT_SIZE]);
bool address_is_equal(const struct address *a, const struct address *b);
bool address_is_in(const struct address *a, const struct address_range *r);
/* Whether all of `inner` is in `outer`. */
bool address_range_is_in(const struct address_range *inner, const struct address_range *outer);

/*
 * Calls `each` with ranges that together have every address: the one with the longest prefix that
 * has an address says its class. Addresses for a translator (NAT64) are to be translated first.
 * Returns what `each` returned last; anything but 0 ends it.
 */
typedef int address_range_fn(
	void *arg, const struct address_range *range, enum address_class class);
int address_each_range(address_range_fn *each, void *arg);
/*
 * Returns the class of an address. An IPv6 address that carries an IPv4 address for a translator
 * (NAT64) has the class of the latter.
 */
enum address_class address_classify(const struct address *a);
/* Whether some address of the range is of the class ADDRESS_NEVER. */
bool address_range_has_never(const struct address_range *r);
/* The class that all addresses of the range have; ADDRESS_GLOBAL if they differ. */
enum address_class address_range_class(const struct address_range *r);
/* The IPv4 address that a translator (NAT64) makes of it; else itself. */
struct address address_translated(const struct address *a);
/* Whether every address of the range is of the class ADDRESS_GLOBAL. */
bool address_range_is_global(const struct address_range *r);

/* Socket addresses. Returns the length; `to` has room for either family. */
socklen_t address_to_socket(const struct address_port *a, struct sockaddr_storage *to);
/* Returns false for another family. */
bool address_from_socket(const struct sockaddr_storage *from, struct address_port *ret);
