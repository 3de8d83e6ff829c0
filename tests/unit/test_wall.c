/*
 * The wall around bunker-egress: a process that is put into such a cgroup tries to connect. It
 * needs root, and a hierarchy of cgroups of version 2. `test_wall query DIRECTORY` prints how many
 * of its four programs a cgroup has.
 */
#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "netns/bpf.h"
#include "netns/netns.h"

enum way {
	WAY_CONNECT,    /* TCP */
	WAY_FAST_OPEN,  /* TCP, by sending */
	WAY_SEND,       /* UDP, by a packet that names its destination */
	WAY_UDP_CONNECT /* UDP */
};

#define OWN_ADDRESS "5.5.5.1"

static char cgroup_path[128];
static int cgroup_fd = -1;

/* ---- the cgroup ---- */

static const char *find_hierarchy(void)
{
	static const char *const places[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	struct statfs fs;
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (statfs(places[i], &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
			return places[i];
	return NULL;
}

/* An address of this host, in a network namespace of the test's own. */
static void take_own_address(void)
{
	struct ifreq request = {.ifr_name = "lo"};
	struct sockaddr_in *address = (struct sockaddr_in *)&request.ifr_addr;
	address->sin_family = AF_INET;
	CHECK(inet_pton(AF_INET, OWN_ADDRESS, &address->sin_addr) == 1);
	CHECK(unshare(CLONE_NEWNET) == 0);
	autoclose int fd = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(ioctl(fd, SIOCSIFADDR, &request) == 0);
}

static bool make_cgroup(void)
{
	const char *hierarchy = find_hierarchy();
	if (geteuid() != 0 || !hierarchy)
		return false;
	snprintf(cgroup_path, sizeof cgroup_path, "%s/bunker-test-wall-%d", hierarchy, getpid());
	CHECK(mkdir(cgroup_path, 0755) == 0);
	cgroup_fd = open(cgroup_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(cgroup_fd >= 0);
	return true;
}

/* ---- attempts ---- */

/* The error of an attempt; 0: it went, or would have gone. IPv6 sockets take IPv4 addresses, too.
 */
static int attempt(enum way way, const char *text, uint16_t port, bool by_v6)
{
	struct address_port to = {.port = port};
	struct sockaddr_storage address;
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	bool udp = way == WAY_SEND || way == WAY_UDP_CONNECT;
	if (address_parse(text, &to.address) < 0)
		return -1;
	socklen_t len = address_to_socket(&to, &address);
	if (by_v6) {
		memcpy(&v6.sin6_addr, &to.address, sizeof v6.sin6_addr);
		memcpy(&address, &v6, sizeof v6);
		len = sizeof v6;
	}
	autoclose int fd =
		socket(address.ss_family, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK, 0);
	int r = way == WAY_CONNECT || way == WAY_UDP_CONNECT
			? connect(fd, (struct sockaddr *)&address, len)
			: (int)sendto(fd, "x", 1, way == WAY_FAST_OPEN ? MSG_FASTOPEN : 0,
				  (struct sockaddr *)&address, len);
	return r < 0 ? errno : 0;
}

struct attempt_case {
	const char *address;
	uint16_t port;
	bool passes;
};

static const struct attempt_case cases[] = {
	{"1.1.1.1", 443, true}, {"2606:4700::1111", 443, true},
	{"203.0.113.77", 80, true},                            /* opened to all */
	{"203.0.113.81", 80, false}, {"10.20.3.4", 443, true}, /* opened to lists */
	{"10.21.3.4", 443, false}, {"127.0.0.53", 53, true},   /* a resolver */
	{"127.0.0.53", 54, false}, {"fd00::53", 5353, true},   /* a resolver */
	{"fd00::53", 53, false}, {"64:ff9b::101:101", 443, true}, {"64:ff9b::7f00:1", 443, false},
	{"64:ff9b::a9fe:a9fe", 80, false}, {"127.0.0.1", 80, false}, {"0.0.0.0", 80, false},
	{"::", 80, false}, {"::1", 80, false}, {"::7f00:1", 80, false},
	{"169.254.169.254", 80, false}, {"168.63.129.16", 80, false},
	{"100.100.100.200", 80, false}, /* in a range that was opened, and never reached */
	{"100.64.0.9", 80, true}, {"192.168.1.1", 80, false}, {"172.16.9.1", 80, false},
	{"224.0.0.1", 80, false}, {"255.255.255.255", 80, false}, {"fd12::1", 80, false},
	{"fd00:ec2::254", 80, false}, {"fe80::1", 80, false}, {"ff02::1", 80, false},
	{"2001:db8::7", 80, false},
	{OWN_ADDRESS, 80, false}, /* global by its number, and this host's */
};

static void make_config(struct egress_config *c)
{
	*c = (struct egress_config){.resolver_count = 2, .public_count = 2, .private_count = 2};
	CHECK_INT(address_parse_port("127.0.0.53", 53, &c->resolvers[0]), 0);
	CHECK_INT(address_parse_port("[fd00::53]:5353", 53, &c->resolvers[1]), 0);
	CHECK_INT(address_parse_range("203.0.113.77/32", &c->public_ranges[0]), 0);
	CHECK_INT(address_parse_range("100.64.0.0/10", &c->public_ranges[1]), 0);
	CHECK_INT(address_parse_range("10.20.0.0/16", &c->private_ranges[0]), 0);
	CHECK_INT(address_parse_range("169.254.0.0/24", &c->private_ranges[1]), 0);
}

static int count_wrong(const struct attempt_case *c, bool inside)
{
	int wrong = 0, forms = strchr(c->address, ':') ? 4 : 8;
	for (int form = 0; form < forms; form++) {
		int error = attempt((enum way)(form % 4), c->address, c->port, form >= 4);
		if ((error == EPERM) == (inside && !c->passes))
			continue;
		printf("# %s port %d, form %d: %s\n", c->address, c->port, form, strerror(error));
		wrong++;
	}
	return wrong;
}

/* In a child, which is in the cgroup or not: a socket is its maker's. Returns what was wrong. */
static int try_all(bool inside)
{
	int status = -1;
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		int wrong = 0;
		if (inside && fd_write_file_at(cgroup_fd, "cgroup.procs", "0") < 0)
			_exit(100);
		for (size_t i = 0; i < ARRAY_LEN(cases); i++)
			wrong += count_wrong(&cases[i], inside);
		fflush(stdout);
		_exit(wrong < 100 ? wrong : 99);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int count_programs(int fd)
{
	static const enum bpf_attach_type types[] = {BPF_CGROUP_INET4_CONNECT,
		BPF_CGROUP_INET6_CONNECT, BPF_CGROUP_UDP4_SENDMSG, BPF_CGROUP_UDP6_SENDMSG};
	int count = 0;
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		uint32_t ids[8];
		union bpf_attr attr = {.query = {.target_fd = (uint32_t)fd,
					       .attach_type = types[i],
					       .prog_ids = (uint64_t)(uintptr_t)ids,
					       .prog_cnt = ARRAY_LEN(ids)}};
		if (bpf_call(BPF_PROG_QUERY, &attr, sizeof attr) == 0)
			count += (int)attr.query.prog_cnt;
	}
	return count;
}

static void who_is_outside_is_not_refused_anything(void)
{
	CHECK_INT(try_all(false), 0);
}

static void who_is_inside_connects_only_to_what_was_opened(void)
{
	struct egress_config config;
	make_config(&config);
	CHECK_INT(netns_raise_wall(cgroup_fd, &config), 0);
	CHECK_INT(try_all(true), 0);
	CHECK_INT(try_all(false), 0);
}

static void another_wall_replaces_the_first(void)
{
	struct egress_config config;
	make_config(&config);
	CHECK_INT(netns_raise_wall(cgroup_fd, &config), 0);
	CHECK_INT(count_programs(cgroup_fd), 4);
	config = (struct egress_config){0};
	CHECK_INT(netns_raise_wall(cgroup_fd, &config), 0);
	CHECK_INT(count_programs(cgroup_fd), 4);
	CHECK_INT(try_all(true), 36); /* what was opened is closed, in every form */
}

static const struct check_test tests[] = {
	TEST(who_is_outside_is_not_refused_anything),
	TEST(who_is_inside_connects_only_to_what_was_opened),
	TEST(another_wall_replaces_the_first),
};

static int print_programs(const char *directory)
{
	autoclose int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	printf("%d\n", fd < 0 ? -errno : count_programs(fd));
	return fd < 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "query") == 0)
		return print_programs(argv[2]);
	check_name = "setup";
	if (setjmp(check_failed))
		return 1;
	if (!make_cgroup()) {
		printf("SKIPPED: the wall needs root and cgroups of version 2\n");
		return 77;
	}
	take_own_address();
	int status = RUN_TESTS(tests);
	close(cgroup_fd);
	rmdir(cgroup_path);
	return status;
}
