/*
 * Amounts as users write them: durations as in Go ("30s", "1h30m", "250ms", "0s"), sizes as in
 * Kubernetes ("256Mi", "1Gi", "500M", "1024"), CPU as "500m" or "0.5". Signs, spaces, empty text,
 * unknown units and values past the type are refused with -EINVAL or -ERANGE.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

int units_parse_duration_ms(const char *text, int64_t *ret);
int units_parse_size(const char *text, int64_t *ret);
int units_parse_millicores(const char *text, int64_t *ret);

#define UNITS_TEXT_SIZE 32
/* The shortest spelling that parses back to the same value. */
void units_format_duration_ms(int64_t ms, char out[UNITS_TEXT_SIZE]);
void units_format_size(int64_t bytes, char out[UNITS_TEXT_SIZE]);
void units_format_millicores(int64_t millicores, char out[UNITS_TEXT_SIZE]);
