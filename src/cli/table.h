/* Columns for people. NULL cells are empty; control bytes are not let through. */
#pragma once

#include <stddef.h>

#define TABLE_COLUMNS_MAX 8

/* Rows of cells, one after the other, at most TABLE_COLUMNS_MAX of them in each. */
void cli_table_print(const char *const *cells, size_t rows, size_t columns);
/* One line of a list of named values. */
void cli_table_print_field(const char *title, const char *value);

/* A table that grows row by row; cells are copied. The first row is its head. */
struct table {
	size_t columns; /* at most TABLE_COLUMNS_MAX */
	char **cells;
	size_t count;
};
/* Out of memory it says so and ends the program: there is nothing else to do then. */
void cli_table_add(struct table *t, const char *const *cells);
/* Prints it, and frees it. */
void cli_table_show(struct table *t);
void cli_table_free(struct table *t);

#define SIZE_TEXT 16
/* "1.5 MiB" */
void cli_table_format_size(double bytes, char out[SIZE_TEXT]);

#define AGE_SIZE 24
/* "42s", "5m", "3h", "12d" since an RFC 3339 time; "?" when it is not one. */
void cli_table_format_age(const char *since, char out[AGE_SIZE]);
