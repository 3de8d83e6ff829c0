#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

int64_t clock_monotonic_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clock_boot_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t clock_wall_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void clock_format_rfc3339(int64_t wall_ms, char out[RFC3339_SIZE])
{
	/* Round down, so that the milliseconds are not negative before 1970 either. */
	int64_t ms = (wall_ms % 1000 + 1000) % 1000;
	time_t seconds = (time_t)((wall_ms - ms) / 1000);
	struct tm tm;
	gmtime_r(&seconds, &tm);
	size_t n = strftime(out, RFC3339_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, RFC3339_SIZE - n, ".%03dZ", (int)ms);
}

/* Parses ".5" as 500 ms; digits finer than a millisecond are dropped. */
static const char *parse_fraction(const char *p, int64_t *ms)
{
	int64_t unit = 100;
	*ms = 0;
	if (*p != '.')
		return p;
	for (p++; *p >= '0' && *p <= '9'; p++, unit /= 10)
		*ms += (*p - '0') * unit;
	return p;
}

static int clock_parse_offset(const char *p, int64_t *seconds)
{
	int hours, minutes, used = 0;
	*seconds = 0;
	if ((*p == 'Z' || *p == 'z') && p[1] == '\0')
		return 0;
	if ((*p != '+' && *p != '-') || sscanf(p + 1, "%2d:%2d%n", &hours, &minutes, &used) != 2 ||
		p[1 + used] || hours < 0 || minutes < 0)
		return -EINVAL;
	*seconds = (hours * 3600 + minutes * 60) * (*p == '-' ? -1 : 1);
	return 0;
}

int clock_parse_rfc3339(const char *text, int64_t *wall_ms)
{
	struct tm tm = {0};
	int64_t ms, offset;
	const char *p = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!p)
		return -EINVAL;
	p = parse_fraction(p, &ms);
	if (clock_parse_offset(p, &offset) < 0)
		return -EINVAL;
	*wall_ms = ((int64_t)timegm(&tm) - offset) * 1000 + ms;
	return 0;
}
