#include "server/totals.h"

#include <fcntl.h>

#include "base/fd.h"

#define RESERVE_MIN  (INT64_C(256) << 20)
#define RESERVE_MAX  (INT64_C(4) << 30)
#define RESERVE_PART 16
#define MEMORY_MIN   (INT64_C(64) << 20)

static int64_t totals_lesser(int64_t a, int64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

struct totals_host totals_of_host(void)
{
	return (struct totals_host){
		.memory = fd_read_number_at(AT_FDCWD, "/proc/meminfo", "MemTotal:") * 1024,
		.pids = totals_lesser(fd_read_number_at(AT_FDCWD, "/proc/sys/kernel/pid_max", ""),
			fd_read_number_at(AT_FDCWD, "/proc/sys/kernel/threads-max", "")),
	};
}

static int64_t totals_memory_without_reserve(int64_t memory)
{
	int64_t reserve = memory / RESERVE_PART;
	reserve = reserve < RESERVE_MIN   ? RESERVE_MIN
		  : reserve > RESERVE_MAX ? RESERVE_MAX
					  : reserve;
	return memory - reserve < MEMORY_MIN ? MEMORY_MIN : memory - reserve;
}

struct warden_limits totals_settle(const struct config *c, const struct totals_host *host)
{
	return (struct warden_limits){
		.memory = c->total_memory ? c->total_memory
					  : totals_memory_without_reserve(host->memory),
		.pids = c->total_pids ? c->total_pids : host->pids - host->pids / 4,
	};
}
