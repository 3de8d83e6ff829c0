#include "cli/table.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

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
