#pragma once

#include <sqlite3.h>

#include "store/backend.h"

/* For the migrations, and for readers at start that are not tables yet. */
sqlite3 *sqlite_handle(struct connection *c);
