#include "confine/forbid.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

static const char *const forbidden[] = {
	"execve",
	"execveat",
	"mount",
	"umount2",
	"pivot_root",
	"fsopen",
	"fsconfig",
	"fsmount",
	"fspick",
	"move_mount",
	"open_tree",
	"mount_setattr",
	"unshare",
	"setns",
	"bpf",
	"perf_event_open",
	"userfaultfd",
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
	"keyctl",
	"add_key",
	"request_key",
	"process_vm_readv",
	"process_vm_writev",
	"pidfd_getfd",
	"kcmp",
	"fanotify_init",
	"kexec_load",
	"kexec_file_load",
	"init_module",
	"finit_module",
	"delete_module",
	"open_by_handle_at",
	"chroot",
	"personality",
	"swapon",
	"swapoff",
	"reboot",
	"sethostname",
	"setdomainname",
	"settimeofday",
	"clock_settime",
	"adjtimex",
	"syslog",
	"acct",
	"quotactl",
	"quotactl_fd",
	"iopl",
	"ioperm",
#if !BUNKER_SANITIZED
	"ptrace",
#endif
};

static const uint64_t namespaces[] = {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
	CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET};

/*
 * Refuses clone3, whose flags a filter cannot see, with ENOSYS, so that libc falls back to clone.
 */
static int forbid_namespaces(scmp_filter_ctx ctx)
{
	int r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(namespaces); i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
			SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces[i], namespaces[i]));
	return r;
}

/* Skips calls unknown to libseccomp: they stay closed under an allow-list, open otherwise. */
static int add_calls(scmp_filter_ctx ctx, uint32_t action, const char *const *names, size_t count)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < count; i++) {
		int nr = seccomp_syscall_resolve_name(names[i]);
		if (nr != __NR_SCMP_ERROR)
			r = seccomp_rule_add(ctx, action, nr, 0);
	}
	return r;
}

static int forbid_load(scmp_filter_ctx ctx, int r)
{
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r;
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

int forbid_calls_but(const char *const *kept, size_t count)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	if (!ctx)
		return -ENOMEM;
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(forbidden); i++)
		if (!is_among(forbidden[i], kept, count))
			r = add_calls(ctx, SCMP_ACT_ERRNO(EPERM), &forbidden[i], 1);
	return forbid_load(ctx, r == 0 ? forbid_namespaces(ctx) : r);
}

int forbid_calls(const char *const *more, size_t count)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	if (!ctx)
		return -ENOMEM;
	int r = add_calls(ctx, SCMP_ACT_ERRNO(EPERM), forbidden, ARRAY_LEN(forbidden));
	if (r == 0)
		r = forbid_namespaces(ctx);
	if (r == 0)
		r = add_calls(ctx, SCMP_ACT_ERRNO(EPERM), more, count);
	return forbid_load(ctx, r);
}

int allow_calls(const char *const *names, size_t count)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	return ctx ? forbid_load(ctx, add_calls(ctx, SCMP_ACT_ALLOW, names, count)) : -ENOMEM;
}

int allow_calls_and_internet(const char *const *names, size_t count)
{
	static const int families[] = {AF_INET, AF_INET6};
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	if (!ctx)
		return -ENOMEM;
	int r = add_calls(ctx, SCMP_ACT_ALLOW, names, count);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(families); i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
			SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i]));
	return forbid_load(ctx, r);
}
