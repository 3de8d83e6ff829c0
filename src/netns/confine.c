/*
 * What bunker-wire gives up. It keeps what entering a sandbox's namespace, setting routes there and
 * loading a program takes, and what starting bunker-egress takes, which it executes.
 */
#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>

#include "base/cleanup.h"
#include "confine/capabilities.h"
#include "confine/forbid.h"
#include "netns/netns.h"

static const unsigned kept_capabilities[] = {CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_BPF, CAP_SYS_PTRACE,
	CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_SYS_RESOURCE};

static const char *const kept_calls[] = {"execveat", "setns", "bpf"};

int netns_confine(struct error *e)
{
	int r = capabilities_keep(kept_capabilities, ARRAY_LEN(kept_capabilities));
	if (r < 0)
		return error_set_errno(e, r, "cannot drop capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_set_errno(e, errno, "cannot set no_new_privs");
	r = forbid_calls_but(kept_calls, ARRAY_LEN(kept_calls));
	return r < 0 ? error_set_errno(e, r, "cannot confine bunker-wire with seccomp") : 0;
}
