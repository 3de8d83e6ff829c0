#include "check.h"

#include "base/address.h"
#include "base/cleanup.h"

static enum address_class class_of(const char *text)
{
	struct address a;
	CHECK_INT(address_parse(text, &a), 0);
	return address_classify(&a);
}

static void knows_what_is_never_reached(void)
{
	static const char *const never[] = {"0.0.0.0", "127.0.0.1", "127.255.255.255",
		"169.254.169.254", "224.0.0.1", "255.255.255.255", "240.0.0.1", "168.63.129.16",
		"100.100.100.200", "192.0.0.192", "::", "::1", "::7f00:1", "fe80::1", "ff02::1",
		"fd00:ec2::254", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
		"64:ff9b::a9fe:a9fe"};
	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		CHECK_INT(class_of(never[i]), ADDRESS_NEVER);
}

static void knows_what_is_local(void)
{
	static const char *const local[] = {"10.0.0.1", "100.64.0.1", "172.16.0.1",
		"172.31.255.255", "192.168.1.1", "198.18.0.1", "203.0.113.77", "192.0.2.53",
		"fc00::1", "fd00::15", "2001:db8::1", "2002:a00:1::", "2001::1", "fec0::1",
		"::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::1", "::ffff:0:a00:1"};
	for (size_t i = 0; i < ARRAY_LEN(local); i++)
		CHECK_INT(class_of(local[i]), ADDRESS_LOCAL);
}

static void knows_what_is_global(void)
{
	static const char *const global[] = {"1.1.1.1", "9.255.255.255", "11.0.0.0",
		"126.255.255.255", "128.0.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255",
		"223.255.255.255", "2606:4700::1111", "2a00:5::1", "64:ff9b::101:101",
		"::ffff:8.8.8.8"};
	for (size_t i = 0; i < ARRAY_LEN(global); i++)
		CHECK_INT(class_of(global[i]), ADDRESS_GLOBAL);
}

static void parses_ranges_and_refuses_what_is_none(void)
{
	static const char *const bad[] = {"", "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/",
		"10.0.0.0/08", "10.0.0.0/8x", "10.0.0", "::/129", "fd00::1/64", "1.2.3.4/-1",
		"0x7f.0.0.1", "017.0.0.1"};
	struct address_range r, wide;
	struct address a;
	char text[ADDRESS_TEXT_SIZE];
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(address_parse_range(bad[i], &r) < 0);
	CHECK_INT(address_parse_range("10.20.0.0/16", &r), 0);
	CHECK_INT(address_parse_range("10.0.0.0/8", &wide), 0);
	CHECK(address_range_is_in(&r, &wide) && !address_range_is_in(&wide, &r));
	CHECK_INT(address_parse("10.20.255.1", &a), 0);
	CHECK(address_is_in(&a, &r));
	CHECK_INT(address_parse("10.21.0.0", &a), 0);
	CHECK(!address_is_in(&a, &r));
	address_format_range(&r, text);
	CHECK_STR(text, "10.20.0.0/16");
	CHECK_INT(address_parse_range("0.0.0.0/0", &r), 0);
	CHECK(address_range_has_never(&r) && !address_range_is_global(&r));
	CHECK_INT(address_parse_range("203.0.113.0/24", &r), 0);
	CHECK(!address_range_has_never(&r));
}

static void parses_addresses_with_ports(void)
{
	static const char *const bad[] = {"", "1.2.3.4:", "1.2.3.4:0", "1.2.3.4:65536", "[::1",
		"[::1]5", "[::1]:", "x", "1.2.3.4:5:6"};
	struct address_port p;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(address_parse_port(bad[i], 53, &p) < 0);
	CHECK(address_parse_port("192.0.2.1", 53, &p) == 0 && p.port == 53);
	CHECK(address_parse_port("192.0.2.1:5353", 53, &p) == 0 && p.port == 5353);
	CHECK(address_parse_port("2001:db8::1", 53, &p) == 0 && p.port == 53);
	CHECK(address_parse_port("[2001:db8::1]:5353", 53, &p) == 0 && p.port == 5353);
}

struct longest {
	struct address address;
	int bits;
	enum address_class class;
};

static int longest_take(void *arg, const struct address_range *r, enum address_class class)
{
	struct longest *l = arg;
	if (address_is_in(&l->address, r) && (int)r->bits > l->bits) {
		l->bits = r->bits;
		l->class = class;
	}
	return 0;
}

/* What the guard of the kernel is made of says the same as what egress asks. */
static void ranges_say_the_class_of_every_address(void)
{
	uint32_t random = 1;
	for (int i = 0; i < 200000; i++) {
		struct longest l = {.bits = -1};
		CHECK_INT(address_parse(i % 2 ? "1.2.3.4" : "2001:db8::1", &l.address), 0);
		for (size_t b = i % 2 ? 12 : 0; b < 16; b++) {
			random = random * 1664525 + 1013904223;
			if (i % 2 || b < 2 || random >> 31)
				l.address.bytes[b] = (uint8_t)(random >> 16);
		}
		struct address at = address_translated(&l.address);
		l.address = at;
		address_each_range(longest_take, &l);
		CHECK_INT(l.class, address_classify(&at));
	}
}

static const struct check_test tests[] = {
	TEST(knows_what_is_never_reached),
	TEST(knows_what_is_local),
	TEST(knows_what_is_global),
	TEST(parses_ranges_and_refuses_what_is_none),
	TEST(parses_addresses_with_ports),
	TEST(ranges_say_the_class_of_every_address),
};

int main(void)
{
	return RUN_TESTS(tests);
}
