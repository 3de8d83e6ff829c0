/*
 * Clocks: monotonic time for durations, wall time for timestamps shown to users, and time since the
 * boot, which like monotonic time never jumps, but goes on while the machine is suspended.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define RFC3339_SIZE 32

int64_t clock_monotonic_us(void);
int64_t clock_boot_ms(void);
int64_t clock_wall_ms(void);
/* "2026-11-15T20:33:40.123Z" */
void clock_format_rfc3339(int64_t wall_ms, char out[RFC3339_SIZE]);
/* Parses RFC 3339 (any UTC offset, any fraction). Returns -EINVAL if malformed. */
int clock_parse_rfc3339(const char *text, int64_t *wall_ms);
