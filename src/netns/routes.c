/*
 * Addresses and routes of a sandbox's namespace, by one message to rtnetlink: an address of each
 * family on the loopback interface, and a route that makes every other address local to it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "netns/netns.h"

#define LOOPBACK_INDEX 1

static const uint8_t own_v4[4] = {10, 0, 2, 15};
static const uint8_t own_v6[16] = {0xfd, [15] = 0x15};

struct batch {
	_Alignas(NLMSG_ALIGNTO) char data[768];
	size_t len;
	unsigned count;
};

static void *batch_begin(struct batch *b, uint16_t type, uint16_t flags, size_t size)
{
	struct nlmsghdr *h = (struct nlmsghdr *)(b->data + b->len);
	*h = (struct nlmsghdr){.nlmsg_len = (uint32_t)NLMSG_LENGTH(size),
		.nlmsg_type = type,
		.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags),
		.nlmsg_seq = ++b->count};
	b->len += NLMSG_ALIGN(h->nlmsg_len);
	return NLMSG_DATA(h);
}

/* Of the message that was begun last, whose head is at `body`. */
static void batch_add(struct batch *b, void *body, uint16_t type, const void *data, size_t len)
{
	struct nlmsghdr *h = (struct nlmsghdr *)((char *)body - NLMSG_HDRLEN);
	struct rtattr *a = (struct rtattr *)(b->data + b->len);
	*a = (struct rtattr){.rta_type = type, .rta_len = (uint16_t)RTA_LENGTH(len)};
	memcpy(RTA_DATA(a), data, len);
	b->len += RTA_ALIGN(a->rta_len);
	h->nlmsg_len += (uint32_t)RTA_ALIGN(a->rta_len);
}

static void batch_link_up(struct batch *b)
{
	struct ifinfomsg *m = batch_begin(b, RTM_NEWLINK, 0, sizeof *m);
	*m = (struct ifinfomsg){
		.ifi_index = LOOPBACK_INDEX, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
}

static void batch_address(
	struct batch *b, uint16_t type, uint16_t flags, int family, const void *address, size_t len)
{
	struct ifaddrmsg *m = batch_begin(b, type, flags, sizeof *m);
	*m = (struct ifaddrmsg){.ifa_family = (uint8_t)family,
		.ifa_prefixlen = (uint8_t)(len * 8),
		.ifa_flags = IFA_F_NODAD,
		.ifa_index = LOOPBACK_INDEX};
	batch_add(b, m, IFA_LOCAL, address, len);
}

static void batch_route(
	struct batch *b, uint16_t type, uint16_t flags, int family, const void *source, size_t len)
{
	const uint32_t device = LOOPBACK_INDEX;
	struct rtmsg *m = batch_begin(b, type, flags, sizeof *m);
	*m = (struct rtmsg){.rtm_family = (uint8_t)family,
		.rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_scope = RT_SCOPE_HOST,
		.rtm_type = RTN_LOCAL};
	batch_add(b, m, RTA_OIF, &device, sizeof device);
	batch_add(b, m, RTA_PREFSRC, source, len);
}

/* A kernel without IPv6, or with it switched off, has no such address; nothing leaves by it. */
static bool batch_error_is_fine(int error, unsigned number, unsigned first_v6, bool adding)
{
	if (error == 0 || (adding && error == EEXIST))
		return true;
	if (!adding && (error == ESRCH || error == EADDRNOTAVAIL))
		return true;
	return number >= first_v6 &&
	       (error == EACCES || error == EOPNOTSUPP || error == EAFNOSUPPORT || error == EPERM);
}

static int batch_read_answers(int fd, const struct batch *b, unsigned first_v6, bool adding)
{
	_Alignas(NLMSG_ALIGNTO) char data[4096];
	unsigned seen = 0;
	while (seen < b->count) {
		ssize_t n = recv(fd, data, sizeof data, 0);
		if (n < 0)
			return -errno;
		size_t len = (size_t)n;
		for (const struct nlmsghdr *h = (const struct nlmsghdr *)data; NLMSG_OK(h, len);
			h = NLMSG_NEXT(h, len)) {
			if (h->nlmsg_type != NLMSG_ERROR)
				continue;
			const struct nlmsgerr *e = NLMSG_DATA(h);
			seen++;
			if (!batch_error_is_fine(-e->error, h->nlmsg_seq, first_v6, adding))
				return e->error;
		}
	}
	return 0;
}

static int batch_run(const struct batch *b, unsigned first_v6, bool adding)
{
	const struct timeval patience = {.tv_sec = 5};
	autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
		send(fd, b->data, b->len, 0) < 0)
		return -errno;
	return batch_read_answers(fd, b, first_v6, adding);
}

int netns_add_routes(void)
{
	const uint16_t replace = NLM_F_CREATE | NLM_F_REPLACE;
	struct batch b = {.len = 0};
	batch_link_up(&b);
	batch_address(&b, RTM_NEWADDR, replace, AF_INET, own_v4, sizeof own_v4);
	batch_route(&b, RTM_NEWROUTE, replace, AF_INET, own_v4, sizeof own_v4);
	batch_address(&b, RTM_NEWADDR, replace, AF_INET6, own_v6, sizeof own_v6);
	batch_route(&b, RTM_NEWROUTE, replace, AF_INET6, own_v6, sizeof own_v6);
	return batch_run(&b, 4, true);
}

int netns_drop_routes(void)
{
	struct batch b = {.len = 0};
	batch_route(&b, RTM_DELROUTE, 0, AF_INET, own_v4, sizeof own_v4);
	batch_address(&b, RTM_DELADDR, 0, AF_INET, own_v4, sizeof own_v4);
	batch_route(&b, RTM_DELROUTE, 0, AF_INET6, own_v6, sizeof own_v6);
	batch_address(&b, RTM_DELADDR, 0, AF_INET6, own_v6, sizeof own_v6);
	return batch_run(&b, 3, false);
}
