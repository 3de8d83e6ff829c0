/*
 * What the store needs of a database. SQLite is the only one in the product. A prototype filled
 * this struct for PostgreSQL in 160 lines, so statements keep to the SQL that both share, with
 * parameters as "?" or "?3".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/field.h"

#define BACKEND_COLUMNS_MAX 64

struct value {
	enum field_storage kind;
	int64_t number;
	char *bytes; /* with a NUL behind them */
	size_t len;
};

struct connection;
/* The values are valid for the time of the call. */
typedef void backend_row_fn(void *arg, const struct value *columns, size_t count);

struct backend {
	const char *name;
	const char *types[3];    /* of columns, by enum field_storage */
	const char *empty[3];    /* what they have by default */
	const char *begin;       /* SQL: a transaction that will write */
	const char *column_list; /* SQL: the names of the columns of table ?1 */
	/* A connection that only reads is opened after one that writes. -ENOSPC: the disk is full.
	 */
	int (*open)(struct connection **ret, const char *where, bool writes, struct error *e);
	void (*close)(struct connection *c);
	/*
	 * Runs a statement that was prepared when its text was first seen. The text stays where it
	 * is while the connection is open: its address is the key.
	 */
	int (*run)(struct connection *c, const char *sql, const struct value *values, size_t count,
		backend_row_fn *row, void *arg);
	/* Runs text that may hold several statements, once. */
	int (*script)(struct connection *c, const char *sql);
	const char *(*message)(struct connection *c);
};

extern const struct backend backend_sqlite;
