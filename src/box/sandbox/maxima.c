/* The most that one sandbox may have on this server. More is an error, not a silent cut. */
#include "box/sandbox/maxima.h"

#include <stdio.h>

#include "base/units.h"
#include "box/sandbox/object.h"

static void maxima_format_count(int64_t count, char out[UNITS_TEXT_SIZE])
{
	snprintf(out, UNITS_TEXT_SIZE, "%lld", (long long)count);
}

static int maxima_check_one(const char *field, int64_t value, int64_t max,
	void (*format)(int64_t amount, char out[UNITS_TEXT_SIZE]), struct error *e)
{
	char text[UNITS_TEXT_SIZE];
	if (value <= max)
		return 0;
	format(max, text);
	return error_set_field(e, ERROR_INVALID_FIELD, field,
		"\"%s\" is above this server's maximum of %s", field, text);
}

int maxima_check(const struct box *b, const struct resources *r, struct error *e)
{
	const struct resources *m = &b->config.maxima;
	if (maxima_check_one("resources.memory", r->memory, m->memory, units_format_size, e) < 0 ||
		maxima_check_one("resources.cpu", r->cpu, m->cpu, units_format_millicores, e) < 0 ||
		maxima_check_one("resources.pids", r->pids, m->pids, maxima_format_count, e) < 0 ||
		maxima_check_one("resources.openFiles", r->open_files, m->open_files,
			maxima_format_count, e) < 0 ||
		maxima_check_one("resources.disk", r->disk, m->disk, units_format_size, e) < 0)
		return -1;
	return 0;
}
