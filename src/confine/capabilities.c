#include "confine/capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool capability_is_kept(unsigned capability, const unsigned *kept, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (kept[i] == capability)
			return true;
	return false;
}

int capabilities_keep(const unsigned *kept, size_t count)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	/* Without CAP_SETPCAP the bounding set stays. */
	for (unsigned c = 0; c <= CAP_LAST_CAP; c++)
		if (!capability_is_kept(c, kept, count) && prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0 &&
			errno != EINVAL && errno != EPERM)
			return -errno;
	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	for (unsigned c = 0; c <= CAP_LAST_CAP; c++)
		if (!capability_is_kept(c, kept, count)) {
			data[c / 32].effective &= ~(1u << (c % 32));
			data[c / 32].permitted &= ~(1u << (c % 32));
			data[c / 32].inheritable = 0;
		}
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}
