#include "base/units.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct unit {
	const char *name;
	int64_t factor;
};

/* Longer names first where one is the prefix of another. */
static const struct unit duration_units[] = {
	{"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 3600 * 1000}, {NULL, 0}};

static const struct unit size_units[] = {{"Ki", 1LL << 10}, {"Mi", 1LL << 20}, {"Gi", 1LL << 30},
	{"Ti", 1LL << 40}, {"k", 1000}, {"K", 1000}, {"M", 1000000}, {"G", 1000000000},
	{"T", 1000000000000}, {"", 1}, {NULL, 0}};

static const struct unit cpu_units[] = {{"m", 1}, {"", 1000}, {NULL, 0}};

/* Digits with an optional fraction, times factor, rounded down. Advances *text past the digits. */
static int units_parse_decimal(const char **text, int64_t *whole, int64_t *fraction, int64_t *scale)
{
	const char *p = *text;
	bool any = false;
	*whole = *fraction = 0;
	*scale = 1;
	for (; *p >= '0' && *p <= '9'; p++, any = true)
		if (__builtin_mul_overflow(*whole, 10, whole) ||
			__builtin_add_overflow(*whole, *p - '0', whole))
			return -ERANGE;
	if (*p == '.') {
		p++;
		if (!any || *p < '0' || *p > '9')
			return -EINVAL;
		for (; *p >= '0' && *p <= '9'; p++) {
			if (*scale < 1000000) {
				*fraction = *fraction * 10 + (*p - '0');
				*scale *= 10;
			}
		}
	}
	*text = p;
	return any ? 0 : -EINVAL;
}

/* One number with its unit; advances *text past both. */
static int parse_quantity(const char **text, const struct unit *units, int64_t *ret)
{
	int64_t whole, fraction, scale, value, part;
	int r = units_parse_decimal(text, &whole, &fraction, &scale);
	if (r < 0)
		return r;
	for (const struct unit *u = units; u->name; u++) {
		size_t len = strlen(u->name);
		if (strncmp(*text, u->name, len) != 0)
			continue;
		*text += len;
		if (__builtin_mul_overflow(whole, u->factor, &value) ||
			__builtin_mul_overflow(fraction, u->factor, &part) ||
			__builtin_add_overflow(value, part / scale, &value))
			return -ERANGE;
		*ret = value;
		return 0;
	}
	return -EINVAL;
}

int units_parse_duration_ms(const char *text, int64_t *ret)
{
	int64_t total = 0;
	if (strcmp(text, "0") == 0) {
		*ret = 0;
		return 0;
	}
	do {
		int64_t part;
		int r = parse_quantity(&text, duration_units, &part);
		if (r < 0)
			return r;
		if (__builtin_add_overflow(total, part, &total))
			return -ERANGE;
	} while (*text);
	*ret = total;
	return 0;
}

static int parse_single(const char *text, const struct unit *units, int64_t *ret)
{
	int64_t value;
	int r = parse_quantity(&text, units, &value);
	if (r < 0)
		return r;
	if (*text)
		return -EINVAL;
	*ret = value;
	return 0;
}

int units_parse_size(const char *text, int64_t *ret)
{
	return parse_single(text, size_units, ret);
}

int units_parse_millicores(const char *text, int64_t *ret)
{
	return parse_single(text, cpu_units, ret);
}

void units_format_duration_ms(int64_t ms, char out[UNITS_TEXT_SIZE])
{
	int64_t h = ms / 3600000, m = ms / 60000 % 60, s = ms / 1000 % 60, rest = ms % 1000;
	int n = 0;
	if (h)
		n += snprintf(out + n, (size_t)(UNITS_TEXT_SIZE - n), "%lldh", (long long)h);
	if (m)
		n += snprintf(out + n, (size_t)(UNITS_TEXT_SIZE - n), "%lldm", (long long)m);
	if (s)
		n += snprintf(out + n, (size_t)(UNITS_TEXT_SIZE - n), "%llds", (long long)s);
	if (rest)
		n += snprintf(out + n, (size_t)(UNITS_TEXT_SIZE - n), "%lldms", (long long)rest);
	if (n == 0)
		snprintf(out, UNITS_TEXT_SIZE, "0s");
}

void units_format_size(int64_t bytes, char out[UNITS_TEXT_SIZE])
{
	static const char *const names[] = {"", "Ki", "Mi", "Gi", "Ti"};
	size_t unit = 0;
	while (unit < 4 && bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(out, UNITS_TEXT_SIZE, "%lld%s", (long long)bytes, names[unit]);
}

void units_format_millicores(int64_t millicores, char out[UNITS_TEXT_SIZE])
{
	snprintf(out, UNITS_TEXT_SIZE, "%lldm", (long long)millicores);
}
