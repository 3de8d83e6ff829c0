#include "base/processor.h"

#include <sched.h>

static cpu_set_t anywhere; /* as it was before we stayed anywhere */
static uint64_t now;

uint64_t processor_near(void)
{
	int number = sched_getcpu();
	return number >= 0 && number < PROCESSOR_MAX ? (uint64_t)number + 1 : 0;
}

void processor_stay(uint64_t near)
{
	cpu_set_t one;
	if (near == now || near > PROCESSOR_MAX)
		return;
	if (now == 0 && sched_getaffinity(0, sizeof anywhere, &anywhere) < 0)
		return;
	CPU_ZERO(&one);
	if (near > 0)
		CPU_SET(near - 1, &one);
	/* A processor outside of our cpuset is refused; the affinity then stays as it was. */
	if (sched_setaffinity(0, sizeof one, near > 0 ? &one : &anywhere) == 0)
		now = near;
}
