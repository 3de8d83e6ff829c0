#include "bench.h"

#include <stdlib.h>

void samples_add(struct samples *s, int64_t us)
{
	if (s->count == s->capacity) {
		size_t capacity = s->capacity ? s->capacity * 2 : 256;
		int64_t *grown = realloc(s->us, capacity * sizeof *grown);
		if (!grown)
			abort();
		s->us = grown;
		s->capacity = capacity;
	}
	s->us[s->count++] = us;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

int64_t samples_percentile(const struct samples *s, unsigned percent)
{
	if (s->count == 0)
		return 0;
	qsort(s->us, s->count, sizeof *s->us, compare);
	size_t at = s->count * percent / 100;
	return s->us[at < s->count ? at : s->count - 1];
}

void samples_finish(struct samples *s)
{
	free(s->us);
	*s = (struct samples){0};
}
