/*
 * 37-41, 44-46, 48, 51-55: system calls that reach the kernel's least tested or most powerful
 * parts. Where the real thing would change a host, the arguments cannot work, and the error tells
 * how far it came.
 */
#include "attempt.h"

#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>

static enum outcome try_bpf(const struct attempt *a)
{
	union bpf_attr attr = {0};
	if (a->arg == BPF_MAP_CREATE) {
		attr.map_type = BPF_MAP_TYPE_ARRAY;
		attr.key_size = attr.value_size = 4;
		attr.max_entries = 1;
	}
	/* Ids begin anywhere; no object at all is an answer, too. */
	return judge_reached(syscall(SYS_bpf, a->arg, &attr, sizeof attr), ENOENT);
}

static enum outcome try_perf(const struct attempt *a)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_CPU_CLOCK};
	return judge(syscall(SYS_perf_event_open, &attr, a->arg, a->arg < 0 ? 0 : -1, -1, 0));
}

static enum outcome try_userfaultfd(const struct attempt *a)
{
	return judge(syscall(SYS_userfaultfd, a->arg));
}

static enum outcome try_io_uring(const struct attempt *a)
{
	struct io_uring_params params = {0};
	if (a->arg == SYS_io_uring_setup)
		return judge(syscall(SYS_io_uring_setup, 4, &params));
	return judge_reached(syscall(a->arg, 1000, 0, 0, 0, 0, 0), EBADF);
}

static enum outcome try_keyctl(const struct attempt *a)
{
	return judge(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, a->arg, 1, 0, 0));
}

static enum outcome try_add_key(const struct attempt *a)
{
	(void)a;
	return judge(
		syscall(SYS_add_key, "user", "bunker-attempt", "x", 1, KEY_SPEC_PROCESS_KEYRING));
}

static enum outcome try_request_key(const struct attempt *a)
{
	(void)a;
	return judge_reached(
		syscall(SYS_request_key, "user", "bunker-no-such-key", NULL, 0), ENOKEY);
}

/* ---- 44, 45: by arguments that cannot work ---- */

static enum outcome try_init_module(const struct attempt *a)
{
	(void)a;
	long r = syscall(SYS_init_module, "", 0, "");
	return errno == ENOEXEC ? judge_reached(r, ENOEXEC) : judge_reached(r, EFAULT);
}

static enum outcome try_finit_module(const struct attempt *a)
{
	(void)a;
	return judge_reached(syscall(SYS_finit_module, -1, "", 0), EBADF);
}

static enum outcome try_delete_module(const struct attempt *a)
{
	(void)a;
	return judge_reached(
		syscall(SYS_delete_module, "bunker_no_such_module", O_NONBLOCK), ENOENT);
}

static enum outcome try_kexec_load(const struct attempt *a)
{
	(void)a;
	return judge_reached(syscall(SYS_kexec_load, 0, 0, NULL, 0xffffUL), EINVAL);
}

static enum outcome try_kexec_file_load(const struct attempt *a)
{
	(void)a;
	return judge_reached(syscall(SYS_kexec_file_load, -1, -1, 0, NULL, 0xffff0000UL), EINVAL);
}

static enum outcome try_syslog(const struct attempt *a)
{
	(void)a;
	return judge(syscall(SYS_syslog, 9, NULL, 0)); /* size of what is unread */
}

static enum outcome try_acct(const struct attempt *a)
{
	(void)a;
	return judge_reached(syscall(SYS_acct, "/bunker/no/such/file"), ENOENT);
}

static enum outcome try_swap(const struct attempt *a)
{
	return judge_reached(syscall(a->arg, "/bunker/no/such/file", 0), ENOENT);
}

static enum outcome try_quotactl(const struct attempt *a)
{
	(void)a;
	return judge_reached(syscall(SYS_quotactl, 0x800002 << 8, "/dev/null", 0, NULL), ENOTBLK);
}

static enum outcome try_reboot(const struct attempt *a)
{
	(void)a;
	return judge_reached(syscall(SYS_reboot, 0, 0, 0, NULL), EINVAL); /* without the magic */
}

static enum outcome try_settimeofday(const struct attempt *a)
{
	(void)a;
	return judge(syscall(SYS_settimeofday, NULL, NULL)); /* asks for the right, sets nothing */
}

static enum outcome try_adjtimex(const struct attempt *a)
{
	struct timex t = {0};
	syscall(SYS_adjtimex, &t);
	t.modes = ADJ_TICK; /* to what it is */
	if (a->arg)
		return judge(syscall(SYS_clock_adjtime, CLOCK_REALTIME, &t));
	return judge(syscall(SYS_adjtimex, &t));
}

static enum outcome try_clock_settime(const struct attempt *a)
{
	struct timespec now;
	(void)a;
	clock_gettime(CLOCK_REALTIME, &now);
	return judge(syscall(SYS_clock_settime, CLOCK_REALTIME, &now)); /* to what it is */
}

static enum outcome try_ports(const struct attempt *a)
{
#if defined(__x86_64__)
	return judge(a->arg ? syscall(SYS_iopl, 3) : syscall(SYS_ioperm, 0x80, 1, 1));
#else
	(void)a;
	errno = ENOSYS;
	return judge(-1);
#endif
}

static enum outcome try_wake_alarm(const struct attempt *a)
{
	(void)a;
	return judge(syscall(SYS_timerfd_create, 8 /* CLOCK_REALTIME_ALARM */, 0));
}

static enum outcome try_vhangup(const struct attempt *a)
{
	(void)a;
	return judge(syscall(SYS_vhangup));
}

/* ---- 46: sockets; family, type and protocol in one number ---- */

#define SOCKET(family, type, protocol) ((family) << 16 | (type) << 12 | (protocol))

/*
 * A filter may answer as a kernel without the family would. Whether it was the filter or the kernel
 * shows where the control gets one.
 */
static enum outcome judge_socket(int r)
{
	bool lacking =
		errno == EAFNOSUPPORT || errno == EPROTONOSUPPORT || errno == ESOCKTNOSUPPORT;
	if (r >= 0 || !lacking)
		return judge(r);
	verdict.error = errno;
	return say(is_control ? ERROR : BLOCKED, "%s", strerror(errno));
}

static enum outcome try_socket(const struct attempt *a)
{
	return judge_socket(
		socket((int)(a->arg >> 16), (int)(a->arg >> 12 & 15), (int)(a->arg & 0xfff)));
}

static enum outcome try_socket_high_bits(const struct attempt *a)
{
	return judge_socket((int)syscall(SYS_socket, 0x100000000 | a->arg, SOCK_RAW, 0));
}

static enum outcome try_socketpair(const struct attempt *a)
{
	int pair[2], r = socketpair((int)a->arg, SOCK_STREAM, 0, pair);
	if (r < 0 && errno == EOPNOTSUPP)
		return say(ESCAPED, "the family is there; it only has no pairs");
	return judge_socket(r);
}

/* ---- 48: terminals ---- */

/* A terminal of our own, controlling us. */
static int open_terminal(void)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), unlock = 0, number;
	char path[64];
	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0 ||
		ioctl(master, TIOCGPTN, &number) < 0)
		return -1;
	snprintf(path, sizeof path, "/dev/pts/%d", number);
	setsid();
	int slave = open(path, O_RDWR);
	return slave >= 0 && ioctl(slave, TIOCSCTTY, 0) == 0 ? slave : -1;
}

static enum outcome try_terminal(const struct attempt *a)
{
	char argument[8] = "x";
	int fd = open_terminal();
	if (fd < 0)
		return say(ERROR, "no terminal: %s", strerror(errno));
	long r = syscall(SYS_ioctl, fd, a->arg, argument);
	/* TIOCLINUX is for consoles; that a pty says so means that the filter did not. */
	if (r < 0 && (errno == ENOTTY || errno == EINVAL))
		return say(ESCAPED, "it came to the driver, which said: %s", strerror(errno));
	/* dev.tty.legacy_tiocsti = 0 makes the kernel refuse with this. */
	if (r < 0 && errno == EIO) {
		verdict.error = is_control ? ENODEV : 0;
		return say(
			is_control ? ERROR : ESCAPED, "it came to the driver: %s", strerror(errno));
	}
	return judge(r);
}

static enum outcome look_at_interfaces(const struct attempt *a)
{
	struct ifreq list[32];
	struct ifconf request = {.ifc_len = sizeof list, .ifc_req = list};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	(void)a;
	if (fd < 0 || ioctl(fd, SIOCGIFCONF, &request) < 0)
		return say(ERROR, "SIOCGIFCONF: %s", strerror(errno));
	for (int i = 0; i < request.ifc_len / (int)sizeof list[0]; i++)
		if (strcmp(list[i].ifr_name, "lo") != 0)
			return say(ESCAPED, "there is the interface %.16s", list[i].ifr_name);
	verdict.error = ENODEV;
	return say(BLOCKED, "there is lo and nothing else");
}

/* ---- 51-54 ---- */

static enum outcome try_prctl_mm(const struct attempt *a)
{
	(void)a;
	return judge_reached(prctl(PR_SET_MM, 1, 0, 0, 0), EINVAL);
}

static enum outcome try_core_scheduling(const struct attempt *a)
{
	(void)a;
	long r = prctl(62 /* PR_SCHED_CORE */, 1, 0, 0, 0);
	/* EINVAL: the kernel was built without; ENODEV: the machine has no siblings. Others have.
	 */
	if (r < 0 && (errno == EINVAL || errno == ENODEV)) {
		verdict.error = ENODEV;
		return say(is_control ? ERROR : ESCAPED, "only this machine's lack of it: %s",
			strerror(errno));
	}
	return judge(r);
}

static enum outcome try_memory_policy(const struct attempt *a)
{
	unsigned long nodes = 1;
	void *page = &nodes;
	int node = 0, status;
	switch (a->arg) {
	case SYS_mbind:
		page = (void *)((uintptr_t)page & ~(uintptr_t)4095);
		return judge(syscall(SYS_mbind, page, 4096, 0, NULL, 0, 0));
	case SYS_set_mempolicy:
		return judge(syscall(SYS_set_mempolicy, 0, NULL, 0));
	case SYS_migrate_pages:
		return judge(syscall(SYS_migrate_pages, 0, 64, &nodes, &nodes));
	default:
		return judge(syscall(SYS_move_pages, 0, 1, &page, &node, &status, 0));
	}
}

static enum outcome try_name_to_handle(const struct attempt *a)
{
	struct {
		uint32_t size;
		int32_t type;
		unsigned char bytes[128];
	} handle = {.size = sizeof handle.bytes};
	int mount_id;
	return judge(syscall(SYS_name_to_handle_at, AT_FDCWD, a->text, &handle, &mount_id, 0));
}

static enum outcome try_fanotify(const struct attempt *a)
{
	return judge(syscall(SYS_fanotify_init, a->arg, O_RDONLY));
}

/* ---- 55: what browsers and careful programs do to themselves ---- */

static enum outcome try_landlock(const struct attempt *a)
{
	struct landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE};
	(void)a;
	int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
	if (fd < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return judge(-1);
	return judge(syscall(SYS_landlock_restrict_self, fd, 0));
}

static enum outcome try_seccomp(const struct attempt *a)
{
	struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {.len = 1, .filter = code};
	(void)a;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return judge(-1);
	return judge(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

/* A filter that allows everything must not open what the one before it closed. */
static enum outcome try_to_undo_seccomp(const struct attempt *a)
{
	if (try_seccomp(a) != ESCAPED)
		return say(ERROR, "no filter could be loaded");
	return judge(syscall(SYS_unshare, 0x10000000 /* CLONE_NEWUSER */));
}

static const struct attempt attempts[] = {
	{37, "bpf-map-create", try_bpf, .arg = BPF_MAP_CREATE},
	{37, "bpf-next-program", try_bpf, .arg = BPF_PROG_GET_NEXT_ID},
	{38, "perf-of-self", try_perf, .arg = 0},
	{38, "perf-of-the-cpu", try_perf, .arg = -1},
	{39, "userfaultfd", try_userfaultfd, .arg = 0},
	{39, "userfaultfd-user-mode-only", try_userfaultfd, .arg = UFFD_USER_MODE_ONLY},
	{40, "io-uring-setup", try_io_uring, .arg = SYS_io_uring_setup},
	{40, "io-uring-enter", try_io_uring, .arg = SYS_io_uring_enter},
	{40, "io-uring-register", try_io_uring, .arg = SYS_io_uring_register},
	{41, "keyctl-session-keyring", try_keyctl, .arg = KEY_SPEC_SESSION_KEYRING},
	{41, "keyctl-user-keyring", try_keyctl, .arg = KEY_SPEC_USER_KEYRING},
	{41, "add-key", try_add_key},
	{41, "request-key", try_request_key},
	{44, "init-module", try_init_module},
	{44, "finit-module", try_finit_module},
	{44, "delete-module", try_delete_module},
	{44, "kexec-load", try_kexec_load},
	{44, "kexec-file-load", try_kexec_file_load},
	{45, "syslog", try_syslog},
	{45, "acct", try_acct},
	{45, "swapon", try_swap, .arg = SYS_swapon},
	{45, "swapoff", try_swap, .arg = SYS_swapoff},
	{45, "quotactl", try_quotactl},
	{45, "reboot", try_reboot},
	{45, "settimeofday", try_settimeofday},
	{45, "adjtimex", try_adjtimex, .arg = 0},
	{45, "clock-adjtime", try_adjtimex, .arg = 1},
	{45, "clock-settime", try_clock_settime},
	{45, "iopl", try_ports, .arg = 1},
	{45, "ioperm", try_ports, .arg = 0},
	{45, "wake-alarm", try_wake_alarm},
	{45, "vhangup", try_vhangup,
		.no_control = "it hangs up the terminal that the tests may run on"},
	{46, "socket-alg", try_socket, .arg = SOCKET(AF_ALG, SOCK_SEQPACKET, 0)},
	{46, "socket-vsock", try_socket, .arg = SOCKET(AF_VSOCK, SOCK_STREAM, 0)},
	{46, "socket-packet", try_socket, .arg = SOCKET(AF_PACKET, SOCK_RAW, 0)},
	{46, "socket-packet-high-bits", try_socket_high_bits, .arg = AF_PACKET},
	{46, "socket-netlink-netfilter", try_socket,
		.arg = SOCKET(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER)},
	{46, "socket-netlink-audit", try_socket,
		.arg = SOCKET(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT)},
	{46, "socket-netlink-kobject", try_socket,
		.arg = SOCKET(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT)},
	{46, "socket-netlink-generic", try_socket,
		.arg = SOCKET(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC)},
	{46, "socket-netlink-xfrm", try_socket, .arg = SOCKET(AF_NETLINK, SOCK_RAW, NETLINK_XFRM)},
	{46, "socket-netlink-diag", try_socket,
		.arg = SOCKET(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG)},
	{46, "socket-xdp", try_socket, .arg = SOCKET(44 /* AF_XDP */, SOCK_RAW, 0)},
	{46, "socket-key", try_socket, .arg = SOCKET(AF_KEY, SOCK_RAW, 2)},
	{46, "socket-bluetooth", try_socket, .arg = SOCKET(AF_BLUETOOTH, SOCK_STREAM, 3)},
	{46, "socket-rds", try_socket, .arg = SOCKET(AF_RDS, SOCK_SEQPACKET, 0)},
	{46, "socket-tipc", try_socket, .arg = SOCKET(AF_TIPC, SOCK_SEQPACKET, 0)},
	{46, "socket-can", try_socket, .arg = SOCKET(AF_CAN, SOCK_RAW, 1)},
	{46, "socket-qipcrtr", try_socket, .arg = SOCKET(42, SOCK_DGRAM, 0)},
	{46, "socket-smc", try_socket, .arg = SOCKET(43, SOCK_STREAM, 0)},
	{46, "socket-kcm", try_socket, .arg = SOCKET(41, SOCK_SEQPACKET, 0)},
	{46, "socket-ax25", try_socket, .arg = SOCKET(AF_AX25, SOCK_SEQPACKET, 0)},
	{46, "socket-raw-icmp", try_socket, .arg = SOCKET(AF_INET, SOCK_RAW, 1)},
	{46, "socket-raw-icmp6", try_socket, .arg = SOCKET(AF_INET6, SOCK_RAW, 58)},
	{46, "socketpair-tipc", try_socketpair, .arg = AF_TIPC},
	{46, "socketpair-netlink", try_socketpair, .arg = AF_NETLINK},
	{46, "may-socket-tcp", try_socket, .arg = SOCKET(AF_INET, SOCK_STREAM, 0)},
	{46, "may-socket-route", try_socket, .arg = SOCKET(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)},
	{48, "push-input", try_terminal, .arg = TIOCSTI},
	{48, "push-input-high-bits", try_terminal, .arg = (long)(0x100000000 | TIOCSTI)},
	{48, "console-selection", try_terminal, .arg = TIOCLINUX},
	{48, "interfaces-of-the-host", look_at_interfaces},
	{51, "prctl-mm", try_prctl_mm, .needs = CAP_SYS_RESOURCE},
	{51, "prctl-core-scheduling", try_core_scheduling},
	{52, "mbind", try_memory_policy, .arg = SYS_mbind},
	{52, "set-mempolicy", try_memory_policy, .arg = SYS_set_mempolicy},
	{52, "migrate-pages", try_memory_policy, .arg = SYS_migrate_pages},
	{52, "move-pages", try_memory_policy, .arg = SYS_move_pages},
	{53, "name-to-handle", try_name_to_handle, .text = "/usr"},
	{54, "fanotify", try_fanotify, .arg = 0},
	{54, "fanotify-report-ids", try_fanotify, .arg = 0x200},
	{55, "may-landlock", try_landlock},
	{55, "may-seccomp", try_seccomp},
	{55, "undo-seccomp", try_to_undo_seccomp},
};

int main(int argc, char **argv)
{
	return attempts_main(argc, argv, attempts, COUNT(attempts));
}
