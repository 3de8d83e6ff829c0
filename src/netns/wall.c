/*
 * The second wall around bunker-egress: programs of its cgroup that the kernel asks before every
 * connect, and before every packet that names its destination. They know nothing of sandboxes and
 * policies, and refuse what no policy may open: loopback, link-local, metadata, multicast and
 * reserved addresses, this host's own, and every range that is not global, unless the operator
 * opened it. So whoever takes over bunker-egress reaches what some sandbox might, and not this
 * host.
 *
 * Two maps decide: the resolvers, by address and port, pass; then the longest prefix that has the
 * address. IPv4 is looked for in its IPv6 form, and an address for a translator (NAT64) as what it
 * is translated to.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "netns/bpf.h"
#include "netns/netns.h"

#define RANGES_MAX 4096
#define PASS       1
#define REFUSE     0

/* As the program lays it on its stack: what the first map is asked for begins with the address. */
struct range_key {
	uint32_t bits;
	struct address address;
};

struct resolver_key {
	struct address address;
	uint32_t port; /* in the network's order */
};

/* ---- maps ---- */

struct wall_maps {
	int ranges, resolvers;
};

static int map_create(enum bpf_map_type type, size_t key_size, uint32_t entries)
{
	union bpf_attr attr = {.map_type = type,
		.key_size = (uint32_t)key_size,
		.value_size = sizeof(uint32_t),
		.max_entries = entries,
		.map_flags = type == BPF_MAP_TYPE_LPM_TRIE ? BPF_F_NO_PREALLOC : 0};
	return bpf_call(BPF_MAP_CREATE, &attr, sizeof attr);
}

static int map_put(int map, const void *key, uint32_t value)
{
	union bpf_attr attr = {.map_fd = (uint32_t)map,
		.key = (uint64_t)(uintptr_t)key,
		.value = (uint64_t)(uintptr_t)&value};
	return bpf_call(BPF_MAP_UPDATE_ELEM, &attr, sizeof attr);
}

static int put_range(int map, const struct address_range *r, uint32_t value)
{
	const struct range_key key = {r->bits, r->first};
	return map_put(map, &key, value);
}

static int put_class(void *arg, const struct address_range *r, enum address_class class)
{
	return put_range(*(int *)arg, r, class == ADDRESS_GLOBAL ? PASS : REFUSE);
}

/* What is never reached is no operator's to open. */
static int put_opened(int map, const struct address_range *ranges, uint32_t count)
{
	int r = 0;
	for (uint32_t i = 0; i < count && r == 0; i++)
		if (address_range_class(&ranges[i]) != ADDRESS_NEVER)
			r = put_range(map, &ranges[i], PASS);
	return r;
}

static int put_own_addresses(int map)
{
	struct ifaddrs *all;
	int r = 0;
	if (getifaddrs(&all) < 0)
		return -errno;
	for (const struct ifaddrs *i = all; i && r == 0; i = i->ifa_next) {
		struct sockaddr_storage address = {0};
		struct address_port own;
		int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
		if (family != AF_INET && family != AF_INET6)
			continue;
		memcpy(&address, i->ifa_addr,
			family == AF_INET ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6));
		if (address_from_socket(&address, &own))
			r = put_range(map, &(struct address_range){own.address, 128}, REFUSE);
	}
	freeifaddrs(all);
	return r;
}

static int put_resolvers(int map, const struct egress_config *c)
{
	int r = 0;
	for (uint32_t i = 0; i < c->resolver_count && r == 0; i++) {
		const struct resolver_key key = {
			address_translated(&c->resolvers[i].address), htons(c->resolvers[i].port)};
		r = map_put(map, &key, PASS);
	}
	return r;
}

/* An address of this host has the longest prefix there is: no range opens it. */
static int make_maps(const struct egress_config *c, struct wall_maps *ret)
{
	ret->resolvers =
		map_create(BPF_MAP_TYPE_HASH, sizeof(struct resolver_key), EGRESS_RESOLVERS_MAX);
	if (ret->resolvers < 0)
		return ret->resolvers;
	ret->ranges = map_create(BPF_MAP_TYPE_LPM_TRIE, sizeof(struct range_key), RANGES_MAX);
	if (ret->ranges < 0)
		return ret->ranges;
	int r = put_resolvers(ret->resolvers, c);
	if (r == 0)
		r = address_each_range(put_class, &ret->ranges);
	if (r == 0)
		r = put_opened(ret->ranges, c->public_ranges, c->public_count);
	if (r == 0)
		r = put_opened(ret->ranges, c->private_ranges, c->private_count);
	return r < 0 ? r : put_own_addresses(ret->ranges);
}

/* ---- programs ---- */

#define AT(member) offsetof(struct bpf_sock_addr, member)
/* The stack: a struct range_key, and the port behind it, which ends a struct resolver_key. */
#define BITS       (-24)
#define ADDRESS(n) (-20 + 4 * (n))
#define PORT       (-4)

#define LOOK_FOR_IT(maps)                                                                          \
	LOAD(BPF_REG_2, BPF_REG_6, AT(user_port)), STORE(BPF_REG_10, PORT, BPF_REG_2),             \
		PUT(BPF_REG_10, BITS, 128), LOAD_MAP(BPF_REG_1, (maps)->resolvers),                \
		MOVE(BPF_REG_2, BPF_REG_10), ADD(BPF_REG_2, ADDRESS(0)),                           \
		CALL(BPF_FUNC_map_lookup_elem), IF_FOUND(BPF_REG_0, 8), /* pass */                 \
		LOAD_MAP(BPF_REG_1, (maps)->ranges), MOVE(BPF_REG_2, BPF_REG_10),                  \
		ADD(BPF_REG_2, BITS), CALL(BPF_FUNC_map_lookup_elem),                              \
		IF_NULL(BPF_REG_0, 4),                                         /* refuse */        \
		LOAD(BPF_REG_0, BPF_REG_0, 0), IF_EQUAL(BPF_REG_0, REFUSE, 2), /* refuse */        \
		SET(BPF_REG_0, PASS), EXIT, SET(BPF_REG_0, REFUSE), EXIT

static int load_wall_program(
	enum bpf_attach_type type, const struct bpf_insn *program, size_t count)
{
	union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_CGROUP_SOCK_ADDR,
		.expected_attach_type = type,
		.insns = (uint64_t)(uintptr_t)program,
		.insn_cnt = (uint32_t)count,
		.license = (uint64_t)(uintptr_t) "Apache-2.0"};
	return bpf_call(BPF_PROG_LOAD, &attr, sizeof attr);
}

static int load_v4(enum bpf_attach_type type, const struct wall_maps *maps)
{
	const struct bpf_insn program[] = {
		MOVE(BPF_REG_6, BPF_REG_1),
		LOAD(BPF_REG_2, BPF_REG_6, AT(user_ip4)),
		PUT(BPF_REG_10, ADDRESS(0), 0),
		PUT(BPF_REG_10, ADDRESS(1), 0),
		PUT(BPF_REG_10, ADDRESS(2), htonl(0xffff)),
		STORE(BPF_REG_10, ADDRESS(3), BPF_REG_2),
		LOOK_FOR_IT(maps),
	};
	return load_wall_program(type, program, ARRAY_LEN(program));
}

static int load_v6(enum bpf_attach_type type, const struct wall_maps *maps)
{
	const struct bpf_insn program[] = {
		MOVE(BPF_REG_6, BPF_REG_1),
		LOAD(BPF_REG_2, BPF_REG_6, AT(user_ip6[0])),
		LOAD(BPF_REG_3, BPF_REG_6, AT(user_ip6[1])),
		LOAD(BPF_REG_4, BPF_REG_6, AT(user_ip6[2])),
		LOAD(BPF_REG_5, BPF_REG_6, AT(user_ip6[3])),
		/* 64:ff9b::a.b.c.d stands for ::ffff:a.b.c.d. */
		IF_NOT(BPF_REG_2, htonl(0x64ff9b), 4),
		IF_NOT(BPF_REG_3, 0, 3),
		IF_NOT(BPF_REG_4, 0, 2),
		SET(BPF_REG_2, 0),
		SET(BPF_REG_4, htonl(0xffff)),
		STORE(BPF_REG_10, ADDRESS(0), BPF_REG_2),
		STORE(BPF_REG_10, ADDRESS(1), BPF_REG_3),
		STORE(BPF_REG_10, ADDRESS(2), BPF_REG_4),
		STORE(BPF_REG_10, ADDRESS(3), BPF_REG_5),
		LOOK_FOR_IT(maps),
	};
	return load_wall_program(type, program, ARRAY_LEN(program));
}

static const struct {
	enum bpf_attach_type type;
	int (*load)(enum bpf_attach_type type, const struct wall_maps *maps);
} stones[] = {
	{BPF_CGROUP_INET4_CONNECT, load_v4},
	{BPF_CGROUP_INET6_CONNECT, load_v6},
	{BPF_CGROUP_UDP4_SENDMSG, load_v4},
	{BPF_CGROUP_UDP6_SENDMSG, load_v6},
};

/* One that stands there already is replaced: programs of a cgroup exclude each other by default. */
static int attach_wall(int cgroup_fd, const struct wall_maps *maps)
{
	for (size_t i = 0; i < ARRAY_LEN(stones); i++) {
		autoclose int program = stones[i].load(stones[i].type, maps);
		if (program < 0)
			return program;
		union bpf_attr attr = {.target_fd = (uint32_t)cgroup_fd,
			.attach_bpf_fd = (uint32_t)program,
			.attach_type = stones[i].type};
		int r = bpf_call(BPF_PROG_ATTACH, &attr, sizeof attr);
		if (r < 0)
			return r;
	}
	return 0;
}

int netns_raise_wall(int cgroup_fd, const struct egress_config *config)
{
	struct wall_maps maps = {-1, -1};
	int r = make_maps(config, &maps);
	if (r == 0)
		r = attach_wall(cgroup_fd, &maps);
	if (maps.ranges >= 0)
		close(maps.ranges);
	if (maps.resolvers >= 0)
		close(maps.resolvers);
	return r;
}

int netns_wall_egress(const struct netns *n)
{
	if (n->unwalled)
		return 0;
	if (mkdirat(n->config.cgroup_fd, EGRESS_CGROUP, 0755) < 0 && errno != EEXIST)
		return -errno;
	autoclose int cgroup =
		openat(n->config.cgroup_fd, EGRESS_CGROUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return cgroup < 0 ? -errno : netns_raise_wall(cgroup, &n->config.egress);
}

/* ---- this host's addresses ---- */

int netns_watch_addresses(void)
{
	const struct sockaddr_nl groups = {
		.nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
	autoclose int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&groups, sizeof groups) < 0)
		return -errno;
	return take_fd(&fd);
}

/* That some were lost (ENOBUFS) is a change, too. */
void netns_read_addresses(int fd)
{
	char data[8192];
	ssize_t n;
	do
		n = recv(fd, data, sizeof data, 0);
	while (n > 0 || (n < 0 && errno == ENOBUFS));
}
