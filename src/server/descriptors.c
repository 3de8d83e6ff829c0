#include "server/descriptors.h"

#include <stddef.h>
#include <sys/resource.h>

#include "base/log.h"

#define OWN_MAX     1536
#define REFUSED_MAX 64
#define MANY        (1u << 20)

static unsigned raise_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return MANY;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_max < MANY ? (unsigned)limit.rlim_max : MANY;
}

static unsigned descriptors_min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

void descriptors_plan(unsigned max_connections, struct descriptor_plan *out)
{
	unsigned all = raise_limit();
	unsigned own = descriptors_min(all / 8, OWN_MAX);
	out->refused = descriptors_min(all / 8, REFUSED_MAX);
	unsigned rest = all - own - out->refused;
	out->clients = descriptors_min(max_connections, rest / 2);
	out->sandboxes = rest - out->clients;
	out->tenant = out->sandboxes / 2;
	if (out->clients < max_connections)
		log_warn("the limit of open files (ulimit -Hn) allows fewer connections",
			"max-connections", log_num(max_connections), "connections",
			log_num(out->clients));
}
