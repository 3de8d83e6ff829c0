/* What the files of this room share. */
#pragma once

#include "store/queue.h"
#include "store/store.h"

struct store {
	sqlite3 *db; /* for reading at start, before the queue's thread has work */
	struct queue *queue;
};

/* Never NULL. */
const char *store_text_at(sqlite3_stmt *st, int column);
