/*
 * The sk_lookup program, assembled by hand. It is asked for the socket of every packet that belongs
 * to no connection yet:
 *
 *     to 127.0.0.0/8, ::1 or the sandbox's own addresses    as if it were not there
 *     TCP                                                    our listening socket
 *     UDP to port 53                                         our UDP socket
 *     anything else                                          dropped; the kernel says unreachable
 *
 * A socket that is gone from the map, because egress is, means dropped, too.
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "netns/bpf.h"
#include "netns/netns.h"

#define KEY_TCP 0
#define KEY_UDP 1
#define KEYS    2

#define AT(member) offsetof(struct bpf_sk_lookup, member)

/* A map of sockets, in which the program finds them. */
static int make_map(int tcp, int udp)
{
	const int sockets[KEYS] = {[KEY_TCP] = tcp, [KEY_UDP] = udp};
	union bpf_attr attr = {.map_type = BPF_MAP_TYPE_SOCKMAP,
		.key_size = sizeof(uint32_t),
		.value_size = sizeof(uint64_t),
		.max_entries = KEYS};
	autoclose int map = bpf_call(BPF_MAP_CREATE, &attr, sizeof attr);
	if (map < 0)
		return map;
	for (uint32_t key = 0; key < KEYS; key++) {
		uint64_t value = (uint64_t)sockets[key];
		memset(&attr, 0, sizeof attr);
		attr.map_fd = (uint32_t)map;
		attr.key = (uint64_t)(uintptr_t)&key;
		attr.value = (uint64_t)(uintptr_t)&value;
		int r = bpf_call(BPF_MAP_UPDATE_ELEM, &attr, sizeof attr);
		if (r < 0)
			return r;
	}
	return take_fd(&map);
}

int netns_load_program(int tcp, int udp)
{
	autoclose int map = make_map(tcp, udp);
	if (map < 0)
		return map;
	const struct bpf_insn program[] = {
		/*  0 */ MOVE(BPF_REG_6, BPF_REG_1),
		/*  1 */ LOAD(BPF_REG_2, BPF_REG_6, AT(family)),
		/*  2 */ IF_EQUAL(BPF_REG_2, AF_INET, 11), /* 14 */
		/*  3 */ IF_NOT(BPF_REG_2, AF_INET6, 40),  /* 44: drop */
		/* IPv6: ::1 and fd00::15 are the sandbox's own. */
		/*  4 */ LOAD(BPF_REG_2, BPF_REG_6, AT(local_ip6[1])),
		/*  5 */ IF_NOT(BPF_REG_2, 0, 13), /* 19 */
		/*  6 */ LOAD(BPF_REG_2, BPF_REG_6, AT(local_ip6[2])),
		/*  7 */ IF_NOT(BPF_REG_2, 0, 11), /* 19 */
		/*  8 */ LOAD(BPF_REG_2, BPF_REG_6, AT(local_ip6[0])),
		/*  9 */ LOAD(BPF_REG_3, BPF_REG_6, AT(local_ip6[3])),
		/* 10 */ IF_NOT(BPF_REG_2, 0, 1),                 /* 12 */
		/* 11 */ IF_EQUAL(BPF_REG_3, htonl(1), 30),       /* 42: pass */
		/* 12 */ IF_NOT(BPF_REG_2, htonl(0xfd000000), 6), /* 19 */
		/* 13 */ IF_EQUAL(BPF_REG_3, htonl(0x15), 28),    /* 42: pass */
		/* IPv4: 10.0.2.15 and 127.0.0.0/8; an IPv6 address that comes here is none of them.
		 */
		/* 14 */ LOAD(BPF_REG_2, BPF_REG_6, AT(local_ip4)),
		/* 15 */ IF_EQUAL(BPF_REG_2, htonl(0x0a00020f), 26), /* 42: pass */
		/* 16 */ OP(BPF_ALU | BPF_END | BPF_TO_BE, BPF_REG_2, 0, 0, 32),
		/* 17 */ OP(BPF_ALU | BPF_RSH | BPF_K, BPF_REG_2, 0, 0, 24),
		/* 18 */ IF_EQUAL(BPF_REG_2, 127, 23), /* 42: pass */
						       /* Which of our sockets. */
		/* 19 */ LOAD(BPF_REG_2, BPF_REG_6, AT(protocol)),
		/* 20 */ SET(BPF_REG_3, KEY_TCP),
		/* 21 */ IF_EQUAL(BPF_REG_2, IPPROTO_TCP, 4), /* 26 */
		/* 22 */ IF_NOT(BPF_REG_2, IPPROTO_UDP, 21),  /* 44: drop */
		/* 23 */ LOAD(BPF_REG_2, BPF_REG_6, AT(local_port)),
		/* 24 */ IF_NOT(BPF_REG_2, 53, 19), /* 44: drop */
		/* 25 */ SET(BPF_REG_3, KEY_UDP),
		/* 26 */ STORE(BPF_REG_10, -4, BPF_REG_3),
		/* 27 */ LOAD_MAP(BPF_REG_1, map),
		/* 29 */ MOVE(BPF_REG_2, BPF_REG_10),
		/* 30 */ ADD(BPF_REG_2, -4),
		/* 31 */ CALL(BPF_FUNC_map_lookup_elem),
		/* 32 */ IF_NULL(BPF_REG_0, 11), /* 44: drop */
		/* 33 */ MOVE(BPF_REG_7, BPF_REG_0),
		/* 34 */ MOVE(BPF_REG_1, BPF_REG_6),
		/* 35 */ MOVE(BPF_REG_2, BPF_REG_7),
		/* 36 */ SET(BPF_REG_3, 0),
		/* 37 */ CALL(BPF_FUNC_sk_assign),
		/* 38 */ MOVE(BPF_REG_8, BPF_REG_0),
		/* 39 */ MOVE(BPF_REG_1, BPF_REG_7),
		/* 40 */ CALL(BPF_FUNC_sk_release),
		/* 41 */ IF_NOT(BPF_REG_8, 0, 2), /* 44: drop */
		/* 42 */ SET(BPF_REG_0, SK_PASS),
		/* 43 */ EXIT,
		/* 44 */ SET(BPF_REG_0, SK_DROP),
		/* 45 */ EXIT,
	};
	union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_SK_LOOKUP,
		.expected_attach_type = BPF_SK_LOOKUP,
		.insns = (uint64_t)(uintptr_t)program,
		.insn_cnt = ARRAY_LEN(program),
		.license = (uint64_t)(uintptr_t) "Apache-2.0"};
	return bpf_call(BPF_PROG_LOAD, &attr, sizeof attr);
}

int netns_attach_program(int program, int namespace_fd)
{
	union bpf_attr attr = {.link_create = {.prog_fd = (uint32_t)program,
				       .target_fd = (uint32_t)namespace_fd,
				       .attach_type = BPF_SK_LOOKUP}};
	return bpf_call(BPF_LINK_CREATE, &attr, sizeof attr);
}
