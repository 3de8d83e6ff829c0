/* What the forms of the report share: names of rows, numbers made of samples, the targets. */
#pragma once

#include "bench.h"

struct row_name {
	const char *name; /* of a part: indented */
	const char *key;
};

extern const struct row_name row_names[ROW_COUNT];
extern const struct row_name duel_names[DUEL_COUNT];
extern const struct row_name disk_names[DISK_COUNT];

double sample_ms(const struct samples *s, unsigned percent);
double row_ms(const struct bench *b, enum row row, unsigned percent);
double times_floor(const struct bench *b, enum row row);
/* Of the peer's p50. */
double duel_ratio(const struct bench *b, enum duel_row row);
double disk_ms(const struct bench *b, size_t size, enum disk_row row);
/* Of all the server's processes, resident. */
double server_mb(const struct bench *b);

/* What the project promised itself. */
struct target {
	const char *name, *unit;
	double value, limit;
	bool measured;
};

#define TARGET_COUNT (14 + DISK_COUNT + DUEL_COUNT + 2)

void targets_fill(const struct bench *b, struct target out[TARGET_COUNT]);
const char *target_verdict(const struct target *t);

/* report_readme.c: the table of the README, to be pasted. */
void report_print_readme(const struct bench *b);
