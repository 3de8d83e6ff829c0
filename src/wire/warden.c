#include "wire/warden.h"

static const char *const step_names[WARDEN_STEP_END] = {
	[WARDEN_STEP_NONE] = "none",
	[WARDEN_STEP_REQUEST] = "checking the request",
	[WARDEN_STEP_SLOT] = "finding a free uid block",
	[WARDEN_STEP_DISK] = "finding the sandbox's disk",
	[WARDEN_STEP_CGROUP] = "making the cgroups",
	[WARDEN_STEP_USERNS] = "making the user namespace",
	[WARDEN_STEP_LAYERS] = "idmapping the template's layers",
	[WARDEN_STEP_SOCKET] = "making init's socket",
	[WARDEN_STEP_CLONE] = "entering new namespaces",
	[WARDEN_STEP_JOIN_CGROUP] = "joining the cgroups",
	[WARDEN_STEP_NETWORK] = "bringing up loopback",
	[WARDEN_STEP_ROOT] = "mounting the root",
	[WARDEN_STEP_USR] = "mounting /usr",
	[WARDEN_STEP_DEV] = "mounting /dev",
	[WARDEN_STEP_PROC] = "mounting /proc",
	[WARDEN_STEP_MASK] = "masking /proc",
	[WARDEN_STEP_RESOLVER] = "lending the host's resolv.conf",
	[WARDEN_STEP_PIVOT] = "entering the root",
	[WARDEN_STEP_IDENTITY] = "becoming the sandbox's root",
	[WARDEN_STEP_SECCOMP] = "loading the seccomp filter",
	[WARDEN_STEP_EXEC] = "starting init",
	[WARDEN_STEP_KILL] = "killing the sandbox's processes",
};

const char *warden_step_name(enum warden_step step)
{
	return step < WARDEN_STEP_END ? step_names[step] : "unknown step";
}
