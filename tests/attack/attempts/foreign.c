/* 47: the other ways into the kernel: i386 by int 0x80, and x32 by a bit in the number. */
#include "attempt.h"

/* Without arguments: nothing can be changed, and that the call comes back at all is the escape. */
static enum outcome try_i386(const struct attempt *a)
{
#if defined(__x86_64__)
	long r;
	asm volatile("int $0x80"
		     : "=a"(r)
		     : "0"(a->arg), "b"(0), "c"(0), "d"(0), "S"(0), "D"(0)
		     : "memory", "r8", "r9", "r10", "r11");
	return say(ESCAPED, "it came back with %ld", r);
#else
	(void)a;
	return say(BLOCKED, "this machine has no such way");
#endif
}

static enum outcome try_x32(const struct attempt *a)
{
#if defined(__x86_64__)
	long r = syscall(0x40000000 | a->arg, 0, 0, 0, 0, 0, 0);
	if (r < 0 && errno == ENOSYS && is_control) {
		verdict.error = ENOSYS;
		return say(ERROR, "this kernel has no x32");
	}
	return say(ESCAPED, "it came back with %ld", r);
#else
	(void)a;
	return say(BLOCKED, "this machine has no such way");
#endif
}

#define DANGEROUS                                                                                  \
	"without a filter it might do something even with empty arguments; getpid is the control"

static const struct attempt attempts[] = {
	{47, "i386-getpid", try_i386, .arg = 20},
	{47, "i386-mount", try_i386, .arg = 21},
	{47, "i386-ptrace", try_i386, .arg = 26},
	{47, "i386-chroot", try_i386, .arg = 61},
	{47, "i386-swapon", try_i386, .arg = 87, .no_control = DANGEROUS},
	{47, "i386-reboot", try_i386, .arg = 88, .no_control = DANGEROUS},
	{47, "i386-socketcall", try_i386, .arg = 102},
	{47, "i386-clone", try_i386, .arg = 120, .no_control = DANGEROUS},
	{47, "i386-init-module", try_i386, .arg = 128, .no_control = DANGEROUS},
	{47, "i386-pivot-root", try_i386, .arg = 217},
	{47, "i386-clock-settime", try_i386, .arg = 264},
	{47, "i386-kexec-load", try_i386, .arg = 283, .no_control = DANGEROUS},
	{47, "i386-add-key", try_i386, .arg = 286},
	{47, "i386-keyctl", try_i386, .arg = 288},
	{47, "i386-unshare", try_i386, .arg = 310},
	{47, "i386-perf-event-open", try_i386, .arg = 336},
	{47, "i386-open-by-handle-at", try_i386, .arg = 342},
	{47, "i386-setns", try_i386, .arg = 346},
	{47, "i386-bpf", try_i386, .arg = 357},
	{47, "i386-socket", try_i386, .arg = 359},
	{47, "i386-userfaultfd", try_i386, .arg = 374},
	{47, "i386-io-uring-setup", try_i386, .arg = 425},
	{47, "i386-open-tree", try_i386, .arg = 428},
	{47, "i386-clone3", try_i386, .arg = 435, .no_control = DANGEROUS},
	{47, "x32-getpid", try_x32, .arg = 39},
	{47, "x32-socket", try_x32, .arg = 41},
	{47, "x32-mount", try_x32, .arg = 165},
	{47, "x32-unshare", try_x32, .arg = 272},
	{47, "x32-setns", try_x32, .arg = 308},
	{47, "x32-bpf", try_x32, .arg = 321},
	{47, "x32-ioctl", try_x32, .arg = 514},
	{47, "x32-ptrace", try_x32, .arg = 521},
	{47, "x32-kexec-load", try_x32, .arg = 528, .no_control = DANGEROUS},
};

int main(int argc, char **argv)
{
	return attempts_main(argc, argv, attempts, COUNT(attempts));
}
