#include "keeper/forbid.h"

#include <errno.h>
#include <seccomp.h>

#include "base/cleanup.h"

static const char *const forbidden[] = {
	"execve",
	"execveat",
	"mount",
	"umount2",
	"pivot_root",
	"fsopen",
	"fsmount",
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
	"iopl",
	"ioperm",
#if !BUNKER_SANITIZED
	"ptrace",
#endif
};

static int forbid(scmp_filter_ctx ctx, const char *const *names, size_t count)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < count; i++) {
		int nr = seccomp_syscall_resolve_name(names[i]);
		if (nr != __NR_SCMP_ERROR)
			r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), nr, 0);
	}
	return r;
}

int forbid_calls(const char *const *more, size_t count)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	if (!ctx)
		return -ENOMEM;
	int r = forbid(ctx, forbidden, ARRAY_LEN(forbidden));
	if (r == 0)
		r = forbid(ctx, more, count);
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r;
}
