#include "wire/network.h"

static const char *const network_steps[NETWORK_STEP_END] = {
	[NETWORK_STEP_NONE] = "none",
	[NETWORK_STEP_REQUEST] = "checking the request",
	[NETWORK_STEP_FIND] = "finding the sandbox's init",
	[NETWORK_STEP_ENTER] = "entering its network namespace",
	[NETWORK_STEP_ROUTES] = "setting its addresses and routes",
	[NETWORK_STEP_SOCKETS] = "making its sockets",
	[NETWORK_STEP_PROGRAM] = "loading the sk_lookup program (CONFIG_BPF_SYSCALL)",
	[NETWORK_STEP_ATTACH] = "attaching the sk_lookup program",
	[NETWORK_STEP_HAND_OVER] = "handing its sockets to bunker-egress",
	[NETWORK_STEP_BROKER] = "starting bunker-broker",
	[NETWORK_STEP_WALL] = "attaching the address guard (CONFIG_CGROUP_BPF)",
};

const char *network_step_name(enum network_step step)
{
	return step < NETWORK_STEP_END ? network_steps[step] : "unknown step";
}
