#include "cli/table.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/report.h"

#define GAP          2
#define FIELD_COLUMN 20

/* Characters, not bytes: UTF-8's continuation bytes take no column. */
static size_t cell_width(const char *cell)
{
	size_t width = 0;
	for (; cell && *cell; cell++)
		width += (*cell & 0xc0) != 0x80;
	return width;
}

static size_t column_width(const char *const *cells, size_t rows, size_t columns, size_t column)
{
	size_t widest = 0;
	for (size_t row = 0; row < rows; row++) {
		size_t width = cell_width(cells[row * columns + column]);
		if (width > widest)
			widest = width;
	}
	return widest;
}

/* Descriptions and names are others' text: an escape sequence must not reach the terminal. */
static void print_cell(const char *cell)
{
	for (; cell && *cell; cell++)
		putchar((unsigned char)*cell < 0x20 || *cell == 0x7f ? '?' : *cell);
}

static void print_gap(size_t width)
{
	while (width-- > 0)
		putchar(' ');
}

void cli_table_print(const char *const *cells, size_t rows, size_t columns)
{
	size_t widths[TABLE_COLUMNS_MAX];
	for (size_t column = 0; column < columns; column++)
		widths[column] = column_width(cells, rows, columns, column);
	for (size_t row = 0; row < rows; row++) {
		const char *const *line = cells + row * columns;
		for (size_t column = 0; column < columns; column++) {
			print_cell(line[column]);
			if (column + 1 < columns)
				print_gap(widths[column] - cell_width(line[column]) + GAP);
		}
		putchar('\n');
	}
}

void cli_table_add(struct table *t, const char *const *cells)
{
	t->cells = reallocarray(t->cells, t->count + t->columns, sizeof *t->cells);
	for (size_t i = 0; t->cells && i < t->columns; i++) {
		t->cells[t->count] = strdup(cells[i] ? cells[i] : "");
		if (!t->cells[t->count++])
			break;
	}
	if (!t->cells || !t->cells[t->count - 1]) {
		cli_report("out of memory");
		exit(STATUS_FAILED);
	}
}

void cli_table_show(struct table *t)
{
	cli_table_print((const char *const *)t->cells, t->count / t->columns, t->columns);
	cli_table_free(t);
}

void cli_table_free(struct table *t)
{
	for (size_t i = 0; i < t->count; i++)
		free(t->cells[i]);
	free(t->cells);
	*t = (struct table){.columns = t->columns};
}

void cli_table_format_size(double bytes, char out[SIZE_TEXT])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	size_t unit = 0;
	while (bytes >= 1024 && unit + 1 < ARRAY_LEN(units)) {
		bytes /= 1024;
		unit++;
	}
	snprintf(out, SIZE_TEXT, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

void cli_table_print_field(const char *title, const char *value)
{
	printf("%-*s", FIELD_COLUMN, title);
	print_cell(value);
	putchar('\n');
}

void cli_table_format_age(const char *since, char out[AGE_SIZE])
{
	static const struct {
		int64_t seconds;
		char unit;
	} units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
	struct tm tm = {0};
	if (!strptime(since, "%Y-%m-%dT%H:%M:%S", &tm)) {
		snprintf(out, AGE_SIZE, "?");
		return;
	}
	int64_t age = clock_wall_ms() / 1000 - (int64_t)timegm(&tm);
	if (age < 0)
		age = 0;
	size_t u = 0;
	while (units[u].seconds > 1 && age < units[u].seconds)
		u++;
	snprintf(out, AGE_SIZE, "%lld%c", (long long)(age / units[u].seconds), units[u].unit);
}
