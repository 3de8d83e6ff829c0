/* The tables, and how an older database becomes a newer one. */
#pragma once

#include <sqlite3.h>

#include "base/error.h"

int schema_migrate(sqlite3 *db, struct error *e);
