#include "base/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define V4_BITS 96 /* before an IPv4 address */

#define V4(a, b, c, d)                                                                             \
	{                                                                                          \
		{                                                                                  \
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d                       \
		}                                                                                  \
	}
/* Builds a prefix from the first four groups of 16 bits; the other groups are 0. */
#define V6(a, b, c, d)                                                                             \
	{                                                                                          \
		{                                                                                  \
			(a) >> 8, (a)&0xff, (b) >> 8, (b)&0xff, (c) >> 8, (c)&0xff, (d) >> 8,      \
				(d)&0xff                                                           \
		}                                                                                  \
	}

static const struct address_range v4_form = {V4(0, 0, 0, 0), V4_BITS};
static const struct address_range nat64 = {V6(0x64, 0xff9b, 0, 0), V4_BITS};
static const struct address_range global_v6 = {V6(0x2000, 0, 0, 0), 3};

/*
 * Ranges that are not global, from the IANA registries of special-purpose addresses (RFC 6890 and
 * later).
 */
static const struct {
	struct address_range range;
	enum address_class class;
} special[] = {
	{{V4(0, 0, 0, 0), 96 + 8}, ADDRESS_NEVER},
	{{V4(10, 0, 0, 0), 96 + 8}, ADDRESS_LOCAL},
	{{V4(100, 100, 100, 200), 128}, ADDRESS_NEVER}, /* metadata of Alibaba Cloud */
	{{V4(100, 64, 0, 0), 96 + 10}, ADDRESS_LOCAL},
	{{V4(127, 0, 0, 0), 96 + 8}, ADDRESS_NEVER},
	{{V4(168, 63, 129, 16), 128}, ADDRESS_NEVER}, /* metadata of Azure */
	{{V4(169, 254, 0, 0), 96 + 16}, ADDRESS_NEVER},
	{{V4(172, 16, 0, 0), 96 + 12}, ADDRESS_LOCAL},
	{{V4(192, 0, 0, 192), 128}, ADDRESS_NEVER}, /* metadata of Oracle Cloud */
	{{V4(192, 0, 0, 0), 96 + 24}, ADDRESS_LOCAL},
	{{V4(192, 0, 2, 0), 96 + 24}, ADDRESS_LOCAL},
	{{V4(192, 88, 99, 0), 96 + 24}, ADDRESS_LOCAL},
	{{V4(192, 168, 0, 0), 96 + 16}, ADDRESS_LOCAL},
	{{V4(198, 18, 0, 0), 96 + 15}, ADDRESS_LOCAL},
	{{V4(198, 51, 100, 0), 96 + 24}, ADDRESS_LOCAL},
	{{V4(203, 0, 113, 0), 96 + 24}, ADDRESS_LOCAL},
	{{V4(224, 0, 0, 0), 96 + 4}, ADDRESS_NEVER},
	{{V4(240, 0, 0, 0), 96 + 4}, ADDRESS_NEVER},
	{{V6(0, 0, 0, 0), 96}, ADDRESS_NEVER}, /* unspecified, loopback, IPv4-compatible */
	{{V6(0xfe80, 0, 0, 0), 10}, ADDRESS_NEVER},
	{{V6(0xff00, 0, 0, 0), 8}, ADDRESS_NEVER},
	{{{{0xfd, 0, 0x0e, 0xc2, [14] = 2, [15] = 0x54}}, 128}, ADDRESS_NEVER}, /* of AWS */
	{{V6(0x2001, 0, 0, 0), 23}, ADDRESS_LOCAL},
	{{V6(0x2001, 0xdb8, 0, 0), 32}, ADDRESS_LOCAL},
	{{V6(0x2002, 0, 0, 0), 16}, ADDRESS_LOCAL},
	{{V6(0x3fff, 0, 0, 0), 20}, ADDRESS_LOCAL},
};

bool address_is_equal(const struct address *a, const struct address *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}

bool address_is_in(const struct address *a, const struct address_range *r)
{
	size_t whole = r->bits / 8;
	unsigned rest = r->bits % 8;
	uint8_t mask = (uint8_t)(0xff00u >> rest);
	if (memcmp(a->bytes, r->first.bytes, whole) != 0)
		return false;
	return rest == 0 || ((a->bytes[whole] ^ r->first.bytes[whole]) & mask) == 0;
}

bool address_range_is_in(const struct address_range *inner, const struct address_range *outer)
{
	return inner->bits >= outer->bits && address_is_in(&inner->first, outer);
}

bool address_is_v4(const struct address *a)
{
	return address_is_in(a, &v4_form);
}

bool address_is_loopback(const struct address *a)
{
	static const struct address v6 = {.bytes = {[15] = 1}};
	return address_is_v4(a) ? a->bytes[12] == 127 : address_is_equal(a, &v6);
}

/* ---- text ---- */

int address_parse(const char *text, struct address *ret)
{
	struct in_addr v4;
	*ret = v4_form.first;
	if (inet_pton(AF_INET, text, &v4) == 1) {
		memcpy(ret->bytes + 12, &v4, sizeof v4);
		return 0;
	}
	return inet_pton(AF_INET6, text, ret->bytes) == 1 ? 0 : -EINVAL;
}

static int parse_decimal(const char *text, unsigned long max, unsigned long *ret)
{
	size_t len = strspn(text, "0123456789");
	if (len == 0 || len > 5 || text[len] || (text[0] == '0' && len > 1))
		return -EINVAL;
	*ret = strtoul(text, NULL, 10);
	return *ret > max ? -EINVAL : 0;
}

static bool range_is_aligned(const struct address_range *r)
{
	struct address_range wider = *r;
	for (unsigned bit = r->bits; bit < 128; bit++)
		if (wider.first.bytes[bit / 8] & (0x80u >> bit % 8))
			return false;
	return true;
}

int address_parse_range(const char *text, struct address_range *ret)
{
	char address[ADDRESS_TEXT_SIZE];
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	unsigned long bits;
	if (len >= sizeof address)
		return -EINVAL;
	snprintf(address, sizeof address, "%.*s", (int)len, text);
	if (address_parse(address, &ret->first) < 0)
		return -EINVAL;
	bool v4 = strchr(address, ':') == NULL;
	bits = v4 ? 32 : 128;
	if (slash && parse_decimal(slash + 1, bits, &bits) < 0)
		return -EINVAL;
	ret->bits = (uint8_t)(bits + (v4 ? V4_BITS : 0));
	return range_is_aligned(ret) ? 0 : -EINVAL;
}

int address_parse_port(const char *text, uint16_t port, struct address_port *ret)
{
	char address[ADDRESS_TEXT_SIZE];
	unsigned long number = port;
	const char *end = text[0] == '[' ? strchr(text, ']') : strrchr(text, ':');
	const char *colon = text[0] == '[' && end ? end + 1 : end;
	if (text[0] == '[' && !end)
		return -EINVAL;
	/* An IPv6 address without brackets has no port. */
	if (text[0] != '[' && end && strchr(text, ':') != end)
		end = colon = NULL;
	if (colon && *colon == ':' && parse_decimal(colon + 1, 65535, &number) < 0)
		return -EINVAL;
	if (colon && *colon && *colon != ':')
		return -EINVAL;
	const char *first = text + (text[0] == '[');
	size_t len = end ? (size_t)(end - first) : strlen(first);
	if (len >= sizeof address || number == 0)
		return -EINVAL;
	snprintf(address, sizeof address, "%.*s", (int)len, first);
	ret->port = (uint16_t)number;
	return address_parse(address, &ret->address);
}

void address_format(const struct address *a, char out[ADDRESS_TEXT_SIZE])
{
	bool v4 = address_is_v4(a);
	out[0] = '\0';
	inet_ntop(v4 ? AF_INET : AF_INET6, a->bytes + (v4 ? 12 : 0), out, ADDRESS_TEXT_SIZE);
}

void address_format_range(const struct address_range *r, char out[ADDRESS_TEXT_SIZE])
{
	bool v4 = r->bits >= V4_BITS && address_is_v4(&r->first);
	address_format(&r->first, out);
	size_t len = strlen(out);
	snprintf(out + len, ADDRESS_TEXT_SIZE - len, "/%d", r->bits - (v4 ? V4_BITS : 0));
}

/* ---- classes ---- */

struct address address_translated(const struct address *a)
{
	struct address inner = v4_form.first;
	if (!address_is_in(a, &nat64))
		return *a;
	memcpy(inner.bytes + 12, a->bytes + 12, 4);
	return inner;
}

enum address_class address_classify(const struct address *a)
{
	const struct address inner = address_translated(a);
	a = &inner;
	for (size_t i = 0; i < ARRAY_LEN(special); i++)
		if (address_is_in(a, &special[i].range))
			return special[i].class;
	return address_is_v4(a) || address_is_in(a, &global_v6) ? ADDRESS_GLOBAL : ADDRESS_LOCAL;
}

int address_each_range(address_range_fn *each, void *arg)
{
	static const struct address_range everything = {.bits = 0};
	int r = each(arg, &everything, ADDRESS_LOCAL);
	if (r == 0)
		r = each(arg, &v4_form, ADDRESS_GLOBAL);
	if (r == 0)
		r = each(arg, &global_v6, ADDRESS_GLOBAL);
	for (size_t i = 0; i < ARRAY_LEN(special) && r == 0; i++)
		r = each(arg, &special[i].range, special[i].class);
	return r;
}

static bool ranges_touch(const struct address_range *a, const struct address_range *b)
{
	return address_range_is_in(a, b) || address_range_is_in(b, a);
}

bool address_range_has_never(const struct address_range *r)
{
	for (size_t i = 0; i < ARRAY_LEN(special); i++)
		if (special[i].class == ADDRESS_NEVER && ranges_touch(r, &special[i].range))
			return true;
	return ranges_touch(r, &nat64);
}

enum address_class address_range_class(const struct address_range *r)
{
	for (size_t i = 0; i < ARRAY_LEN(special); i++)
		if (address_range_is_in(r, &special[i].range))
			return special[i].class;
	if (address_range_is_in(r, &nat64))
		return r->bits == 128 ? address_classify(&r->first) : ADDRESS_LOCAL;
	if (address_is_v4(&r->first) || address_range_is_in(r, &global_v6))
		return ADDRESS_GLOBAL;
	return address_range_is_in(&global_v6, r) ? ADDRESS_GLOBAL : ADDRESS_LOCAL;
}

bool address_range_is_global(const struct address_range *r)
{
	for (size_t i = 0; i < ARRAY_LEN(special); i++)
		if (ranges_touch(r, &special[i].range))
			return false;
	return address_range_is_in(r, &v4_form) || address_range_is_in(r, &global_v6);
}

/* ---- sockets ---- */

socklen_t address_to_socket(const struct address_port *a, struct sockaddr_storage *to)
{
	memset(to, 0, sizeof *to);
	if (address_is_v4(&a->address)) {
		struct sockaddr_in *v4 = (struct sockaddr_in *)to;
		v4->sin_family = AF_INET;
		v4->sin_port = htons(a->port);
		memcpy(&v4->sin_addr, a->address.bytes + 12, 4);
		return sizeof *v4;
	}
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(a->port);
	memcpy(&v6->sin6_addr, a->address.bytes, 16);
	return sizeof *v6;
}

bool address_from_socket(const struct sockaddr_storage *from, struct address_port *ret)
{
	if (from->ss_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
		ret->address = v4_form.first;
		memcpy(ret->address.bytes + 12, &v4->sin_addr, 4);
		ret->port = ntohs(v4->sin_port);
		return true;
	}
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
	memcpy(ret->address.bytes, &v6->sin6_addr, 16);
	ret->port = ntohs(v6->sin6_port);
	return from->ss_family == AF_INET6;
}
