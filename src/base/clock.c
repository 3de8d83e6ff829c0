#include "base/clock.h"

#include <stdio.h>
#include <time.h>

int64_t clock_monotonic_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clock_wall_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void clock_format_rfc3339(int64_t wall_ms, char out[RFC3339_SIZE])
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm tm;
	gmtime_r(&seconds, &tm);
	size_t n = strftime(out, RFC3339_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, RFC3339_SIZE - n, ".%03dZ", (int)(wall_ms % 1000));
}
