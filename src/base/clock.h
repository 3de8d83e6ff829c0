/* The two clocks we use: a monotonic one for durations, the wall for what people read. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define RFC3339_SIZE 32

int64_t clock_monotonic_us(void);
int64_t clock_wall_ms(void);
/* "2026-11-15T20:33:40.123Z" */
void clock_format_rfc3339(int64_t wall_ms, char out[RFC3339_SIZE]);
/* Any offset, any number of digits behind the second; -EINVAL for what is none. */
int clock_parse_rfc3339(const char *text, int64_t *wall_ms);
